#include "vad_support.h"

#include <stdlib.h>
#include <string.h>

const char vad_header[] =
    "{\"stft_conv.weight\":{\"dtype\":\"F32\",\"shape\":[258,1,256],\"data_offsets\":[0,264192]},"
    "\"conv1.weight\":{\"dtype\":\"F32\",\"shape\":[2,129,3],\"data_offsets\":[264192,267288]},"
    "\"conv1.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[267288,267296]},"
    "\"conv2.weight\":{\"dtype\":\"F32\",\"shape\":[2,2,3],\"data_offsets\":[267296,267344]},"
    "\"conv2.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[267344,267352]},"
    "\"conv3.weight\":{\"dtype\":\"F32\",\"shape\":[2,2,3],\"data_offsets\":[267352,267400]},"
    "\"conv3.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[267400,267408]},"
    "\"conv4.weight\":{\"dtype\":\"F32\",\"shape\":[2,2,3],\"data_offsets\":[267408,267456]},"
    "\"conv4.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[267456,267464]},"
    "\"lstm_cell.weight_ih\":{\"dtype\":\"F32\",\"shape\":[8,2],\"data_offsets\":[267464,267528]},"
    "\"lstm_cell.weight_hh\":{\"dtype\":\"F32\",\"shape\":[8,2],\"data_offsets\":[267528,267592]},"
    "\"lstm_cell.bias_ih\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[267592,267624]},"
    "\"lstm_cell.bias_hh\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[267624,267656]},"
    "\"final_conv.weight\":{\"dtype\":\"F32\",\"shape\":[1,2,1],\"data_offsets\":[267656,267664]},"
    "\"final_conv.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[267664,267668]}}";

uint8_t *vad_file(const char *header, size_t data, size_t *size)
{
    const size_t n = strlen(header);
    uint8_t *file = malloc(8 + n + data);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(file + 8, header, n);
    uint32_t random = 1;
    for (size_t i = 0; i + 4 <= data; i += 4) {
        random = random * 1664525u + 1013904223u;
        const float value = ((float)(random >> 8) / 8388608.0f - 1.0f) / 4;
        memcpy(file + 8 + n + i, &value, 4);
    }
    *size = 8 + n + data;
    return file;
}
