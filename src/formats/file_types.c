#include "formats/file_types.h"

#include <stddef.h>

#include "sotto/model.h"

static const st_file_type types[] = {
    {9, "q8_1", 32, 36},      {15, "q8_k", 256, 292}, {16, "iq2_xxs", 256, 66}, {17, "iq2_xs", 256, 74},
    {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50}, {21, "iq3_s", 256, 110},  {22, "iq2_s", 256, 82},
    {23, "iq4_xs", 256, 136}, {25, "i16", 1, 2},      {27, "i64", 1, 8},        {28, "f64", 1, 8},
    {29, "iq1_m", 256, 56},   {34, "tq1_0", 256, 54}, {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},
    {40, "nvfp4", 64, 36},    {41, "q1_0", 128, 18},  {42, "q2_0", 64, 18},
};

const st_file_type *st_file_type_of(int number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const char *sotto_model_dtype_name(sotto_dtype dtype)
{
    const st_file_type *type = st_file_type_of((int)dtype);
    return type ? type->name : sotto_dtype_name(dtype);
}
