// A hash table with open addressing that counts words. Argument: number of words.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (1 << 17)
#define LONGEST 12

typedef struct {
    char text[LONGEST];
    uint32_t times;
} slot;

static slot table[SLOTS];

static uint32_t hash(const char *text) {
    uint32_t value = 2166136261u;
    for (; *text; text++) value = (value ^ (uint8_t)*text) * 16777619u;
    return value ^ value >> 15;
}

static slot *find(const char *text) {
    uint32_t place = hash(text) % SLOTS;
    while (table[place].times && strcmp(table[place].text, text)) place = (place + 1) % SLOTS;
    return &table[place];
}

static void write_word(char *text, uint32_t number) {
    int length = 0;
    do {
        text[length++] = (char)('a' + number % 26);
        number /= 26;
    } while (number && length < LONGEST - 1);
    text[length] = 0;
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 4000000;
    uint32_t state = 7, distinct = 0, most = 0;
    for (int i = 0; i < n; i++) {
        char text[LONGEST];
        state = state * 1664525u + 1013904223u;
        write_word(text, (state >> 16) * (state >> 24) % 60000);
        slot *found = find(text);
        if (!found->times) {
            strcpy(found->text, text);
            distinct++;
        }
        if (++found->times > most) most = found->times;
    }
    printf("%u %u\n", distinct, most);
    return 0;
}
