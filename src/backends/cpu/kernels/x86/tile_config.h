/* tile_config.h: the shapes of AMX's tiles, as LDTILECFG reads them (Intel's manual, volume 1, chapter 18). A configuration is a
 * constant in memory, whole: the intrinsic tells gcc 12 of eight bytes only. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_TILE_CONFIG_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_TILE_CONFIG_H

#include <stdint.h>

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

#endif
