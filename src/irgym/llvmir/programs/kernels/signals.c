/* Signals, ciphers and long numbers. */

#include <stddef.h>
#include <stdint.h>

void fourier(double *re, double *im, size_t n, const double *cosines, const double *sines) {
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double kept = re[i];
            re[i] = re[j];
            re[j] = kept;
            kept = im[i];
            im[i] = im[j];
            im[j] = kept;
        }
    }
    for (size_t half = 1; half < n; half <<= 1)
        for (size_t start = 0; start < n; start += 2 * half)
            for (size_t k = 0; k < half; k++) {
                double c = cosines[k * (n / (2 * half))], s = sines[k * (n / (2 * half))];
                double x = re[start + half + k] * c - im[start + half + k] * s;
                double y = re[start + half + k] * s + im[start + half + k] * c;
                re[start + half + k] = re[start + k] - x;
                im[start + half + k] = im[start + k] - y;
                re[start + k] += x;
                im[start + k] += y;
            }
}

void clip_gain(const int16_t *in, int16_t *out, size_t n, int32_t gain, int32_t bias) {
    for (size_t i = 0; i < n; i++) {
        if (in[i] * gain + bias > 32767 << 8)
            out[i] = 32767;
        else if (in[i] * gain + bias < -32768 * 256)
            out[i] = -32768;
        else
            out[i] = (int16_t)((in[i] * gain + bias) >> 8);
    }
}

void predict(const int32_t *samples, int32_t *residuals, size_t n, const int32_t *weights, int32_t order,
             int32_t shift) {
    for (size_t i = 0; i < n; i++) {
        if (i < (size_t)order) {
            residuals[i] = samples[i];
            continue;
        }
        int64_t sum = 0;
        for (int32_t k = 0; k < order; k++)
            sum += (int64_t)weights[k] * samples[i - (size_t)k - 1];
        residuals[i] = samples[i] - (int32_t)(sum >> shift);
    }
}

void encipher(uint32_t *block, const uint32_t *key, uint32_t rounds) {
    uint32_t a = block[0], b = block[1], sum = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
        sum += 0x9e3779b9u;
        b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
    }
    block[0] = a;
    block[1] = b;
}

static uint32_t turn(uint32_t x, int n) { return x << n | x >> (32 - n); }

void mix(uint32_t *state, const uint32_t *message, const uint32_t *constants) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 64; i++) {
        uint32_t f;
        int place, turns;
        if (i < 16) {
            f = (b & c) | (~b & d);
            place = i;
            turns = 7 + 5 * (i & 3);
        } else if (i < 32) {
            f = (d & b) | (~d & c);
            place = (5 * i + 1) & 15;
            turns = 5 + 4 * (i & 3) + (i & 2);
        } else if (i < 48) {
            f = b ^ c ^ d;
            place = (3 * i + 5) & 15;
            turns = 4 + 6 * (i & 3);
        } else {
            f = c ^ (b | ~d);
            place = (7 * i) & 15;
            turns = 6 + 4 * (i & 3) + (i & 1);
        }
        f += a + constants[i] + message[place];
        a = d;
        d = c;
        c = b;
        b += turn(f, turns);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

uint32_t add_numbers(uint32_t *to, const uint32_t *from, size_t n) {
    uint32_t carry = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t sum = to[i] + from[i];
        uint32_t over = sum < to[i];
        to[i] = sum + carry;
        carry = over | (to[i] < sum);
    }
    return carry;
}

void multiply_numbers(const uint32_t *a, size_t n, const uint32_t *b, size_t m, uint32_t *out) {
    for (size_t i = 0; i < n + m; i++)
        out[i] = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t carry = 0;
        if (a[i] == 0)
            continue;
        for (size_t j = 0; j < m; j++) {
            carry += (uint64_t)a[i] * b[j] + out[i + j];
            out[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out[i + m] = (uint32_t)carry;
    }
}

int32_t compare_numbers(const uint32_t *a, const uint32_t *b, size_t n) {
    for (size_t i = n; i-- > 0;) {
        if (a[i] < b[i])
            return -1;
        if (a[i] > b[i])
            return 1;
    }
    return 0;
}
