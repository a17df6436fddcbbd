// SPDX-License-Identifier: MIT
// Whether a picture is still the one that it was.
//
//     compare_pictures GOLDEN NEW             0: it is; 1: it is not; 2: these are not two pictures
//     compare_pictures --make WAY FROM TO     a copy that differs in a known way, see WAYS
//
// The limits lie between what a driver may round and what is broken, both measured on lavapipe with pictures of the
// demo's flight, 240 by 135 at the first quality that has shadows:
//                                                          mean   pixels off   worst tile
//     camera turned by 1/256 of a pixel, the driver's grid  0.6      0.7 %         2.9
//     by five times as much                                 1.1      1.5 %         2.9
//     limit                                                 1.5      2.0 %          10
//     by half a pixel                                      10.9     16.2 %        41.4
//     sun turned by three degrees                           2.8      1.3 %        20.6
//     without animals                                       1.2      0.9 %        47.0
//     without the lights of the night                       1.6      2.9 %        44.9
//     without glow around bright things                     3.7      5.7 %        89.3
//     without water                                         2.0      3.1 %        33.0
//     without shadows                                       6.0      9.5 %        58.9
//     without one chunk that is near                        0.9      0.6 %        62.3
//     without another                                       0.3      0.5 %        20.5
// The numbers are those of the worst of five pictures; one of them beyond one limit is enough. A flame of one pixel on
// an edge has moved a tile by 9, with the glow around it: hence that limit.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STBI_ONLY_PNG
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

// Of 255, over all pixels and colours: wrong light, another camera.
#define MEAN_MAX 1.5

// A pixel is off where one of its colours is by more than this, of 255; so many of a hundred may be. On an edge a pixel
// may show what is behind instead.
#define OFF_MIN 32
#define OFF_PERCENT_MAX 2.0

// The picture in tiles of so many pixels a side, and how far the mean colour of one may be off, of 255: something small
// that is missing. What is rounded on edges has no side that it prefers, except where a bright pixel glows.
#define TILE 15
#define TILE_MAX 10.0

typedef struct image {
    uint8_t *rgb;
    int width, height;
} image;

typedef struct difference {
    double mean, off_percent, tile; // see above
} difference;

static bool image_load(image *out, const char *path) {
    int channels = 0;
    out->rgb = stbi_load(path, &out->width, &out->height, &channels, 3);
    if (out->rgb == NULL) fprintf(stderr, "compare_pictures: '%s' is no picture\n", path);
    return out->rgb != NULL;
}

// --- comparing ---

static int error_at(const image *a, const image *b, int x, int y, int channel) {
    size_t at = ((size_t)y * (size_t)a->width + (size_t)x) * 3 + (size_t)channel;
    return a->rgb[at] - b->rgb[at];
}

static double tile_error(const image *a, const image *b, int left, int top, int channel) {
    int sum = 0, count = 0;
    for (int y = top; y < top + TILE && y < a->height; ++y)
        for (int x = left; x < left + TILE && x < a->width; ++x, ++count) sum += error_at(a, b, x, y, channel);
    return (double)abs(sum) / count;
}

static double worst_tile(const image *a, const image *b) {
    double worst = 0;
    for (int top = 0; top < a->height; top += TILE)
        for (int left = 0; left < a->width; left += TILE)
            for (int channel = 0; channel < 3; ++channel) {
                double error = tile_error(a, b, left, top, channel);
                if (error > worst) worst = error;
            }
    return worst;
}

static difference compare(const image *a, const image *b) {
    double sum = 0, off = 0, count = (double)a->width * a->height;
    for (int y = 0; y < a->height; ++y)
        for (int x = 0; x < a->width; ++x) {
            int worst = 0;
            for (int channel = 0; channel < 3; ++channel) {
                int error = abs(error_at(a, b, x, y, channel));
                sum += error;
                if (error > worst) worst = error;
            }
            off += worst > OFF_MIN;
        }
    return (difference){sum / (count * 3), 100 * off / count, worst_tile(a, b)};
}

static int judge(const image *a, const image *b) {
    if (a->width != b->width || a->height != b->height) {
        printf("%d x %d pixels instead of %d x %d\n", b->width, b->height, a->width, a->height);
        return 1;
    }
    difference d = compare(a, b);
    bool is_same = d.mean <= MEAN_MAX && d.off_percent <= OFF_PERCENT_MAX && d.tile <= TILE_MAX;
    printf("mean error %.3f (at most %.1f), %.3f %% of the pixels off by more than %d (%.1f), worst tile %.1f (%.0f): "
           "%s\n",
           d.mean, MEAN_MAX, d.off_percent, OFF_MIN, OFF_PERCENT_MAX, d.tile, TILE_MAX, is_same ? "same" : "DIFFERENT");
    return is_same ? 0 : 1;
}

static int compare_files(const char *golden, const char *path) {
    image a = {0}, b = {0};
    int code = image_load(&a, golden) && image_load(&b, path) ? judge(&a, &b) : 2;
    stbi_image_free(a.rgb);
    stbi_image_free(b.rgb);
    return code;
}

// --- pictures that differ ---

typedef void way_fn(image *it);

static uint8_t *pixel(const image *it, int x, int y) {
    return it->rgb + ((size_t)y * (size_t)it->width + (size_t)x) * 3;
}

// A rectangle of a tenth of each side, in other colours than it has.
static void paint(image *it) {
    for (int y = it->height / 2; y < it->height / 2 + it->height / 10; ++y)
        for (int i = 0; i < it->width / 10 * 3; ++i) pixel(it, it->width / 2, y)[i] ^= 0x80;
}

// As a camera that looks two pixels to the side.
static void shift(image *it) {
    for (int y = 0; y < it->height; ++y) memmove(pixel(it, 0, y), pixel(it, 2, y), (size_t)(it->width - 2) * 3);
}

// Nine tenths of the light.
static void darken(image *it) {
    size_t count = (size_t)it->width * (size_t)it->height * 3;
    for (size_t i = 0; i < count; ++i) it->rgb[i] = (uint8_t)(it->rgb[i] * 9 / 10);
}

// One pixel of a hundred shows what its neighbour does, and each colour is rounded the other way: that has to pass.
static void round_off(image *it) {
    uint32_t random = 1;
    for (int y = 0; y < it->height; ++y)
        for (int x = 0; x + 1 < it->width; ++x) {
            random = random * 1664525u + 1013904223u;
            uint8_t *at = pixel(it, x, y);
            if (random >> 16 < 655) memcpy(at, pixel(it, x + 1, y), 3);
            for (int channel = 0; channel < 3; ++channel) at[channel] ^= random >> (8 + channel) & 1;
        }
}

static const struct {
    const char *name;
    way_fn *apply;
} WAYS[] = {{"painted", paint}, {"shifted", shift}, {"darker", darken}, {"rounded", round_off}};

static way_fn *way_of(const char *name) {
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; ++i)
        if (strcmp(WAYS[i].name, name) == 0) return WAYS[i].apply;
    return NULL;
}

static int make(const char *name, const char *from, const char *to) {
    image it = {0};
    way_fn *way = way_of(name);
    if (way == NULL || !image_load(&it, from)) return 2;
    bool is_made = it.width >= 16 && it.height >= 16;
    if (is_made) way(&it);
    is_made = is_made && stbi_write_png(to, it.width, it.height, 3, it.rgb, it.width * 3) != 0;
    stbi_image_free(it.rgb);
    return is_made ? 0 : 2;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "--make") == 0) return make(argv[2], argv[3], argv[4]);
    if (argc == 3) return compare_files(argv[1], argv[2]);
    fputs("usage: compare_pictures GOLDEN NEW\n       compare_pictures --make WAY FROM TO\n", stderr);
    return 2;
}
