#include "models/common/tok_charmap.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/status.h"
#include "base/utf8.h"

static sotto_status split(st_charmap *m, const uint8_t *bytes, size_t n, const char *key, sotto_error *err)
{
    st_bytes b = st_bytes_over(bytes, n);
    const size_t array = st_bytes_u32(&b);
    if (b.failed || array % 4 != 0 || array >= st_bytes_left(&b))
        return st_fail(err, SOTTO_E_FORMAT, "%s: %zu bytes with an array of %zu, expected strings behind it", key, n,
                       array);
    if (bytes[n - 1] != 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s: its last string has no end", key);
    m->n_units = array / 4;
    m->n_strings = n - 4 - array;
    m->units = st_alloc(m->n_units, sizeof *m->units);
    m->strings = st_alloc(m->n_strings, 1);
    if (!m->units || !m->strings)
        return st_fail_memory(err, n, key);
    for (size_t i = 0; i < m->n_units; i++)
        m->units[i] = st_bytes_u32(&b);
    memcpy(m->strings, st_bytes_take(&b, m->n_strings), m->n_strings);
    return SOTTO_OK;
}

sotto_status st_charmap_read(st_charmap *m, const sotto_model_file *file, const char *key, sotto_error *err)
{
    const int64_t *values;
    int64_t n;
    const sotto_status found = sotto_meta_ints(file, key, &values, &n, err);
    if (found == SOTTO_E_NOT_FOUND)
        return SOTTO_OK;
    ST_TRY(found);
    if (n == 0)
        return SOTTO_OK;
    uint8_t *bytes = st_alloc((size_t)n, 1);
    if (!bytes)
        return st_fail_memory(err, (uint64_t)n, key);
    for (int64_t i = 0; i < n; i++) {
        if (values[i] < -128 || values[i] > 255) {
            st_free(bytes);
            return st_fail(err, SOTTO_E_FORMAT, "%s: element %lld is %lld, expected a byte", key, (long long)i,
                           (long long)values[i]);
        }
        bytes[i] = (uint8_t)values[i];
    }
    const sotto_status status = split(m, bytes, (size_t)n, key, err);
    st_free(bytes);
    return status;
}

void st_charmap_free(st_charmap *m)
{
    st_free(m->units);
    st_free(m->strings);
    *m = (st_charmap){0};
}

/* Units: bits 0..7 and 31 the label, bit 8 "a key ends here", bit 9 the offset is in units of 256, bits 10..30 the offset; a
 * unit that a key's end leads to holds a value in bits 0..30. */
static size_t unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 0x200u) >> 6);
}

const char *st_charmap_at(const st_charmap *m, const char *text, size_t n, size_t *used, size_t *got)
{
    size_t at = m->n_units > 0 ? unit_offset(m->units[0]) : 0, value = m->n_strings;
    *used = 0;
    for (size_t i = 0; i < n && text[i] != 0; i++) {
        at ^= (uint8_t)text[i];
        if (at >= m->n_units || (m->units[at] & 0x800000ffu) != (uint8_t)text[i])
            break;
        const uint32_t unit = m->units[at];
        at ^= unit_offset(unit);
        if (unit & 0x100u && at < m->n_units) {
            value = m->units[at] & 0x7fffffffu;
            *used = i + 1;
        }
    }
    if (*used > 0 && value < m->n_strings) {
        *got = strlen(m->strings + value);
        return m->strings + value;
    }
    const int length = st_utf8_next((const uint8_t *)text, n, NULL);
    *used = *got = length > 0 ? (size_t)length : 1;
    if (length > 0)
        return text;
    *got = 3;
    return "\xef\xbf\xbd";
}
