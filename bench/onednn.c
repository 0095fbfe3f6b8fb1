/* onednn.c: products of oneDNN 2 (libdnnl-dev) on one thread, on the shapes of kernels.c, for comparison with bench_kernels.
 * Left rows lie ready in the product's own type, where Sotto's products begin with f32 and convert them; right ones are
 * ordered as oneDNN likes best; results are f32 with a bias, 8-bit ones scaled by column.
 *
 *   bench_onednn [--isa avx2|avx2_vnni|avx512_core|avx512_core_vnni|avx512_core_bf16|avx512_core_amx] [--sizes tiny,base,...]
 *
 * An object a line, as bench_kernels --json. Medians of five. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dnnl.h>
#include <omp.h>

#include "probe_support.h"

enum { N_POS = 1500, SAMPLES = 5 };
static const double LEAST = 0.05; /* seconds of a sample */

static const struct {
    const char *name;
    int64_t d;
} sizes[] = {{"tiny", 384}, {"base", 512}, {"small", 768}, {"medium", 1024}, {"large-v3", 1280}};

static const struct {
    const char *name;
    dnnl_data_type_t left, right;
    bool scaled;
} types[] = {{"f32", dnnl_f32, dnnl_f32, false}, {"bf16", dnnl_bf16, dnnl_bf16, false}, {"i8", dnnl_u8, dnnl_s8, true}};

static const struct {
    const char *name;
    dnnl_cpu_isa_t isa;
} isas[] = {{"avx2", dnnl_cpu_isa_avx2},
            {"avx2_vnni", dnnl_cpu_isa_avx2_vnni},
            {"avx512_core", dnnl_cpu_isa_avx512_core},
            {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
            {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
            {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx}};

typedef struct job {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_t memory[4];
    dnnl_exec_arg_t args[4];
} job;

static void run(void *arg)
{
    const job *j = arg;
    dnnl_primitive_execute(j->primitive, j->stream, 4, j->args);
    dnnl_stream_wait(j->stream);
}

static void fill(dnnl_memory_t memory, size_t bytes)
{
    void *data;
    if (dnnl_memory_get_data_handle(memory, &data) == dnnl_success)
        memset(data, 1, bytes);
}

/* Seconds of a product [m, k] x [k, n]; 0: oneDNN has none of this type here. */
static double measure(dnnl_engine_t engine, dnnl_stream_t stream, int t, int64_t m, int64_t n, int64_t k)
{
    const dnnl_dims_t left = {m, k}, right = {k, n}, bias = {1, n}, out = {m, n};
    dnnl_memory_desc_t d[4];
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
    job j = {.stream = stream};
    dnnl_memory_desc_init_by_tag(&d[0], 2, left, types[t].left, dnnl_ab);
    dnnl_memory_desc_init_by_tag(&d[1], 2, right, types[t].right, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&d[2], 2, bias, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_init_by_tag(&d[3], 2, out, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_init(&matmul, &d[0], &d[1], &d[2], &d[3]);
    dnnl_primitive_attr_create(&attr);
    float *scales = calloc((size_t)n, sizeof *scales);
    if (types[t].scaled && scales)
        dnnl_primitive_attr_set_output_scales(attr, n, 1 << 1, scales);
    const bool known = dnnl_primitive_desc_create(&desc, &matmul, attr, engine, NULL) == dnnl_success;
    dnnl_primitive_attr_destroy(attr);
    free(scales);
    if (!known)
        return 0;
    double seconds = 0;
    if (dnnl_primitive_create(&j.primitive, desc) == dnnl_success) {
        static const int roles[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
        static const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                               dnnl_query_dst_md};
        for (int i = 0; i < 4; i++) {
            const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, queries[i], i == 2);
            dnnl_memory_create(&j.memory[i], md, engine, DNNL_MEMORY_ALLOCATE);
            fill(j.memory[i], dnnl_memory_desc_get_size(md));
            j.args[i] = (dnnl_exec_arg_t){roles[i], j.memory[i]};
        }
        run(&j);
        seconds = bench_measure(run, &j, 1, NULL, NULL, SAMPLES, LEAST).seconds;
        for (int i = 0; i < 4; i++)
            dnnl_memory_destroy(j.memory[i]);
        dnnl_primitive_destroy(j.primitive);
    }
    dnnl_primitive_desc_destroy(desc);
    return seconds;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_onednn [--isa avx2|avx2_vnni|avx512_core|avx512_core_vnni|avx512_core_bf16|avx512_core_amx] "
            "[--sizes tiny,base,...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *list = "", *isa = "";
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 >= argc)
            return usage();
        if (strcmp(argv[i], "--isa") == 0)
            isa = argv[i + 1];
        else if (strcmp(argv[i], "--sizes") == 0)
            list = argv[i + 1];
        else
            return usage();
    }
    bool found = isa[0] == '\0';
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (strcmp(isa, isas[i].name) == 0)
            found = dnnl_set_max_cpu_isa(isas[i].isa) == dnnl_success;
    if (!found)
        return usage();
    omp_set_num_threads(1);
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success) {
        fprintf(stderr, "bench_onednn: no engine for the processor\n");
        return 1;
    }
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int64_t d = sizes[s].d, shapes[3][2] = {{d, d}, {4 * d, d}, {d, 4 * d}};
        for (int t = 0; bench_listed(list, sizes[s].name) && t < 3; t++)
            for (int i = 0; i < 3; i++) {
                const int64_t n = shapes[i][0], k = shapes[i][1];
                const double seconds = measure(engine, stream, t, N_POS, n, k);
                if (seconds > 0)
                    printf("{\"size\": \"%s\", \"type\": \"%s\", \"shape\": \"%dx%dx%d\", \"rate\": %.3f}\n",
                           sizes[s].name, types[t].name, N_POS, (int)n, (int)k,
                           (double)N_POS * (double)n * (double)k / seconds * 1e-9);
            }
    }
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return 0;
}
