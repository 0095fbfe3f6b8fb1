/* settings.c: the simulated devices. Alone in this file, so that a test can have its own (see sim.h). */
#include "backends/gpu/api/sim/sim.h"

const st_sim_settings *st_sim_settings_of(int device)
{
    static const st_sim_settings settings[ST_SIM_DEVICES] = {
        {32, ST_SIM_FORWARD, true, false, (size_t)1 << 30, 65536, 0, NULL, NULL, false},
        {8, ST_SIM_REVERSE, false, false, (size_t)1 << 30, 32768, 0, NULL, NULL, false},
        {16, ST_SIM_SHUFFLED, false, false, (size_t)1 << 30, 32768, 0, NULL, NULL, false},
        {64, ST_SIM_FORWARD, false, false, (size_t)1 << 20, 32768, 0, NULL, NULL, false},
    };
    return &settings[device];
}
