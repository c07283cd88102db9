/* Texts and packed bytes: checksums, encodings, searches. */

#include <stddef.h>
#include <stdint.h>

uint32_t adler(const uint8_t *data, size_t length) {
    uint32_t low = 1, high = 0;
    while (length > 0) {
        size_t part = length > 5552 ? 5552 : length;
        length -= part;
        for (; part > 0; part--) {
            low += *data++;
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return high << 16 | low;
}

uint32_t crc(const uint8_t *data, size_t length) {
    uint32_t sum = ~0u;
    for (size_t i = 0; i < length; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
    }
    return ~sum;
}

static int digit(uint8_t letter) {
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

ptrdiff_t decode_base64(const uint8_t *text, size_t length, uint8_t *out) {
    ptrdiff_t written = 0;
    for (size_t i = 0; i + 3 < length; i += 4) {
        int a = digit(text[i]), b = digit(text[i + 1]), c = digit(text[i + 2]), d = digit(text[i + 3]);
        if (a < 0 || b < 0)
            return -(ptrdiff_t)i - 1;
        out[written++] = (uint8_t)(a << 2 | b >> 4);
        if (text[i + 2] == '=')
            return text[i + 3] == '=' ? written : -(ptrdiff_t)i - 3;
        if (c < 0)
            return -(ptrdiff_t)i - 3;
        out[written++] = (uint8_t)(b << 4 | c >> 2);
        if (text[i + 3] == '=')
            return written;
        if (d < 0)
            return -(ptrdiff_t)i - 4;
        out[written++] = (uint8_t)(c << 6 | d);
    }
    return written;
}

size_t decode_utf8(const uint8_t *text, size_t length, uint32_t *out) {
    size_t count = 0, i = 0;
    while (i < length) {
        uint8_t first = text[i];
        if (first < 0x80) {
            out[count++] = first;
            i += 1;
        } else if ((first & 0xe0) == 0xc0 && i + 1 < length && (text[i + 1] & 0xc0) == 0x80) {
            out[count++] = (uint32_t)(first & 0x1f) << 6 | (text[i + 1] & 0x3f);
            i += 2;
        } else if ((first & 0xf0) == 0xe0 && i + 2 < length && (text[i + 1] & 0xc0) == 0x80 &&
                   (text[i + 2] & 0xc0) == 0x80) {
            out[count++] =
                (uint32_t)(first & 0x0f) << 12 | (uint32_t)(text[i + 1] & 0x3f) << 6 | (text[i + 2] & 0x3f);
            i += 3;
        } else {
            out[count++] = 0xfffd;
            i += 1;
        }
    }
    return count;
}

size_t pack_runs(const uint8_t *data, size_t length, uint8_t *out) {
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        size_t run = 1;
        while (i + run < length && run < 127 && data[i + run] == data[i])
            run++;
        if (run > 2) {
            out[written] = (uint8_t)(0x80 | run);
            out[written + 1] = data[i];
            written += 2;
        } else {
            out[written] = (uint8_t)run;
            for (size_t k = 0; k < run; k++)
                out[written + 1 + k] = data[i + k];
            written += run + 1;
        }
        i += run;
    }
    return written;
}

ptrdiff_t find(const uint8_t *text, size_t length, const uint8_t *word, size_t size) {
    if (size == 0)
        return 0;
    for (size_t i = 0; i + size <= length; i++) {
        if (text[i] != word[0] || text[i + size - 1] != word[size - 1])
            continue;
        size_t k = 1;
        while (k < size && text[i + k] == word[k])
            k++;
        if (k >= size)
            return (ptrdiff_t)i;
    }
    return -1;
}

uint32_t edit_distance(const uint8_t *first, uint32_t rows, const uint8_t *second, uint32_t columns,
                       uint32_t *table) {
    uint32_t width = columns + 1;
    for (uint32_t i = 0; i <= rows; i++)
        table[i * width] = i;
    for (uint32_t j = 0; j <= columns; j++)
        table[j] = j;
    for (uint32_t i = 1; i <= rows; i++)
        for (uint32_t j = 1; j <= columns; j++) {
            if (first[i - 1] == second[j - 1]) {
                table[i * width + j] = table[(i - 1) * width + j - 1];
                continue;
            }
            uint32_t best = table[(i - 1) * width + j - 1];
            if (table[(i - 1) * width + j] < best)
                best = table[(i - 1) * width + j];
            if (table[i * width + j - 1] < best)
                best = table[i * width + j - 1];
            table[i * width + j] = best + 1;
        }
    return table[rows * width + columns];
}

int64_t parse_number(const uint8_t *text, size_t length, size_t *end) {
    size_t i = 0;
    while (i < length && (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r')))
        i++;
    int negative = i < length && text[i] == '-';
    if (i < length && (text[i] == '-' || text[i] == '+'))
        i++;
    uint64_t value = 0;
    if (i + 1 < length && text[i] == '0' && (text[i + 1] | 0x20) == 'x') {
        for (i += 2; i < length; i++) {
            uint8_t letter = text[i] | 0x20;
            if (text[i] >= '0' && text[i] <= '9')
                value = value * 16 + (text[i] - '0');
            else if (letter >= 'a' && letter <= 'f')
                value = value * 16 + (letter - 'a' + 10);
            else
                break;
        }
    } else {
        for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
            value = value * 10 + (text[i] - '0');
    }
    *end = i;
    return (int64_t)(negative ? 0 - value : value);
}
