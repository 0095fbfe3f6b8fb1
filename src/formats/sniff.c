#include "formats/sniff.h"

#include <string.h>

const char *const st_folder_weights[] = {"model.bin", "model.safetensors", "model.safetensors.index.json", NULL};

static const st_reader *const readers[] = {&st_reader_ggml, &st_reader_gguf, &st_reader_ct2, &st_reader_safetensors,
                                           &st_reader_shards};

const st_reader *st_sniff(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i]->probe(data, size))
            return readers[i];
    return NULL;
}

/* Things that are often taken for a model. */
static const struct {
    const char *start;
    const char *is;
    sotto_status status;
} lookalikes[] = {
    {"PK\x03\x04", "a zip archive, perhaps a PyTorch checkpoint (.pt)", SOTTO_E_UNSUPPORTED},
    {"\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint (.pt)", SOTTO_E_UNSUPPORTED},
    {"version https://git-lfs", "a Git LFS pointer: the model itself was not downloaded", SOTTO_E_FORMAT},
    {"<!DOCTYPE", "a web page: the download failed", SOTTO_E_FORMAT},
    {"<!doctype", "a web page: the download failed", SOTTO_E_FORMAT},
    {"<html", "a web page: the download failed", SOTTO_E_FORMAT},
    {"<?xml", "an XML document: the download failed", SOTTO_E_FORMAT},
    {"{", "a JSON document", SOTTO_E_FORMAT},
    {"\x1f\x8b", "a gzip archive", SOTTO_E_UNSUPPORTED},
    {"BZh", "a bzip2 archive", SOTTO_E_UNSUPPORTED},
    {"\xfd"
     "7zXZ",
     "an xz archive", SOTTO_E_UNSUPPORTED},
    {"fmgg", "ggml's old format \"ggmf\"", SOTTO_E_UNSUPPORTED},
    {"tjgg", "ggml's old format \"ggjt\"", SOTTO_E_UNSUPPORTED},
    {"lmgg", "a ggml file that stops after its first word", SOTTO_E_FORMAT},
    {"RIFF", "a RIFF file, perhaps audio", SOTTO_E_FORMAT},
    {"\x89HDF", "an HDF5 file", SOTTO_E_UNSUPPORTED},
    {"\x7f"
     "ELF",
     "a program", SOTTO_E_FORMAT},
};

sotto_status st_sniff_fail(const uint8_t *data, size_t size, sotto_error *err)
{
    static const char expected[] = "expected a ggml, GGUF, safetensors or CTranslate2 model";
    if (size == 0)
        return st_fail(err, SOTTO_E_FORMAT, "the file is empty, %s", expected);
    for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++) {
        const size_t n = strlen(lookalikes[i].start);
        if (size >= n && memcmp(data, lookalikes[i].start, n) == 0)
            return st_fail(err, lookalikes[i].status, "is %s, %s", lookalikes[i].is, expected);
    }
    if (size < 4)
        return st_fail(err, SOTTO_E_FORMAT, "the file has %zu bytes, %s", size, expected);
    return st_fail(err, SOTTO_E_FORMAT, "begins with bytes %02x %02x %02x %02x, %s", data[0], data[1], data[2], data[3],
                   expected);
}

sotto_status st_sniff_folder_fail(sotto_model_file *file, sotto_error *err)
{
    bool pickle;
    ST_TRY(st_model_has_sibling(file, "pytorch_model.bin", &pickle, err));
    return st_fail(err, SOTTO_E_NOT_FOUND, "%s: the folder has none of %s, %s or %s%s", file->path,
                   st_folder_weights[0], st_folder_weights[1], st_folder_weights[2],
                   pickle ? " (its pytorch_model.bin is a Python pickle, which is not read: convert it to safetensors)"
                          : "");
}
