// SPDX-License-Identifier: MIT
// Occlusion by the land.
//
// Seen from above the eye, whatever is on the planet has a place on the plane that touches the planet there: where the
// line from the planet's middle through it meets that plane. On this map borders between columns are straight lines,
// heights make no difference, and a line of sight is straight away from the middle of the map. How far out a place is
// there, `t`, is the tangent of its angle at the planet's middle.
//
// At t, the line from an eye at distance e to a height r rises by (r cos - e) / (r sin) = (1 - k sqrt(1 + t t)) / t
// with k = e / r. Over a span of t that is least at one of its ends, and most where sqrt(1 + t t) = k or at the end
// nearest to that.

#include "work_occlusion.h"

#include <math.h>
#include <string.h>

#include "../planet/relief.h"
#include "picture_job.h"

// From above all land and trees little is hidden but by the planet's limb: it is not looked for.
#define EYE_HIGHEST (SPHERE_RADIUS + RELIEF_MAX + 20)

// A land this near in the cosine of its angle is on the eye's side of the planet.
#define COSINE_MIN 0.1

// Rounding: shares of a sector, and of a rise.
#define SECTOR_MARGIN 0.05f
#define RISE_MARGIN 1e-4

#define RISE_LOWEST (-1e30f)

// The inner end of the first ring.
#define RING_FIRST (1.0f / 4096)

typedef struct map {
    vec3d up, east, north;
    double eye; // its distance from the planet's middle
} map;

typedef struct point {
    double x, y;
} point;

// --- places on the map ---

static map map_of(vec3d eye) {
    map m = {.up = vec3d_normal(eye, (vec3d){0, 1, 0}), .eye = vec3d_length(eye)};
    vec3d pole = m.up.y * m.up.y < 0.5 ? (vec3d){0, 1, 0} : (vec3d){1, 0, 0};
    m.east = vec3d_normal(vec3d_cross(pole, m.up), (vec3d){0, 0, 1});
    m.north = vec3d_cross(m.up, m.east);
    return m;
}

// False where it is not on this side of the planet.
static bool point_of(const map *m, vec3d direction, point *out) {
    double depth = vec3d_dot(direction, m->up);
    if (!(depth > COSINE_MIN * vec3d_length(direction))) return false;
    *out = (point){vec3d_dot(direction, m->east) / depth, vec3d_dot(direction, m->north) / depth};
    return true;
}

static double cross(point a, point b) { return a.x * b.y - a.y * b.x; }

static double length(point a) { return sqrt(a.x * a.x + a.y * a.y); }

// From the middle of the map to the nearest point between two.
static double distance_to(point a, point b) {
    point way = {b.x - a.x, b.y - a.y};
    double square = way.x * way.x + way.y * way.y;
    double share = square > 0 ? -(a.x * way.x + a.y * way.y) / square : 0;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return length((point){a.x + way.x * share, a.y + way.y * share});
}

// Around the middle, from 0 to the count of sectors: not an angle, but it grows with it, and opposite points are half
// of them apart.
static double around(point a) {
    double sum = fabs(a.x) + fabs(a.y), share = sum > 0 ? a.x / sum : 0;
    return (a.y < 0 ? 3 + share : 1 - share) * (OCCLUSION_SECTORS / 4);
}

// The way from one sector to another that is shorter, in sectors.
static double turn_to(double from, double to) {
    double way = to - from;
    if (way > OCCLUSION_SECTORS / 2) way -= OCCLUSION_SECTORS;
    return way < -(double)(OCCLUSION_SECTORS / 2) ? way + OCCLUSION_SECTORS : way;
}

// --- outlines ---

// False where it is around the eye, or on the other side of the planet: seen, and it hides nothing.
static bool outline_of_land(const map *m, const occlusion_land *land, occlusion_outline *out) {
    point corners[4];
    double near = 1e30, far = 0, low = 0, high = 0;
    uint32_t left_count = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        vec3 c = land->corners[i];
        if (!point_of(m, (vec3d){c.x, c.y, c.z}, &corners[i])) return false;
    }
    double first = around(corners[0]);
    for (uint32_t i = 0; i < 4; ++i) {
        point next = corners[(i + 1) % 4];
        double edge = distance_to(corners[i], next), out_to = length(corners[i]), turn = turn_to(first, around(next));
        left_count += cross(corners[i], next) > 0;
        near = edge < near ? edge : near, far = out_to > far ? out_to : far;
        low = turn < low ? turn : low, high = turn > high ? turn : high;
    }
    if (left_count == 0 || left_count == 4) return false;
    out->near = (float)near, out->far = (float)far;
    out->first = (float)(first + low), out->last = (float)(first + high);
    return near > RING_FIRST && far < 1;
}

static bool outline_of_sphere(const map *m, vec3 middle, float radius, occlusion_outline *out) {
    point at;
    vec3d direction = {middle.x, middle.y, middle.z};
    if (!point_of(m, direction, &at)) return false;
    // A tangent grows by no more than 1 + t t of what the angle does, and a sector's number by no more than the angle.
    double t = length(at), wide = radius / vec3_length(middle) * (1 + t * t) * 1.5;
    if (!(t - wide > RING_FIRST) || !(t + wide < 1) || wide > t / 4) return false;
    double turn = wide / (t - wide) * (OCCLUSION_SECTORS / 4), sector = around(at);
    out->near = (float)(t - wide), out->far = (float)(t + wide);
    out->first = (float)(sector - turn), out->last = (float)(sector + turn);
    return true;
}

// What can be told of the things in the picture; the bits of all others are set.
static uint32_t find_outlines(const occlusion_input *input, const map *m, occlusion_outline *outlines,
                              uint64_t *words) {
    uint32_t count = 0;
    for (uint32_t number = 0; number < input->land_count + input->sphere_count; ++number) {
        occlusion_outline *out = &outlines[count];
        bool is_known = false;
        if (number < input->land_count) {
            is_known = input->is_drawn[number] != 0 && frustum_has_bounds(&input->frustum, &input->bounds[number]) &&
                       outline_of_land(m, &input->lands[number], out);
        } else {
            vec3 middle = input->spheres[number - input->land_count];
            is_known = frustum_has_sphere(&input->frustum, middle, input->sphere_radius) &&
                       outline_of_sphere(m, middle, input->sphere_radius, out);
        }
        out->number = number;
        if (is_known)
            ++count;
        else
            words[number / OCCLUSION_WORD_THINGS] |= (uint64_t)1 << number % OCCLUSION_WORD_THINGS;
    }
    return count;
}

// --- the horizon ---

static double rise(double k, double t) { return (1 - k * sqrt(1 + t * t)) / t; }

static double rise_least(double k, double near, double far) {
    double a = rise(k, near), b = rise(k, far);
    return a < b ? a : b;
}

static double rise_most(double k, double near, double far) {
    double t = k > 1 ? sqrt(k * k - 1) : 0;
    return rise(k, t < near ? near : t > far ? far : t);
}

// Exponent and upper bits of a float count steps that grow with it.
static uint32_t ring_of(float t) {
    float share = t / RING_FIRST;
    uint32_t bits;
    memcpy(&bits, &share, sizeof bits);
    if (!(share >= 1)) return 0;
    uint32_t ring = (bits >> 20) - 127u * OCCLUSION_RINGS_EACH + 1;
    return ring < OCCLUSION_RINGS ? ring : OCCLUSION_RINGS - 1;
}

// The sectors of one job.
typedef struct sectors {
    uint32_t first, stride;
    float *horizon; // by ring, of each sector
} sectors;

// The rings of a sector, which may be counted from below 0 or beyond a turn; NULL where another job has it.
static float *rings_of(const sectors *mine, int32_t sector) {
    uint32_t at = (uint32_t)(sector + (int32_t)OCCLUSION_SECTORS) % OCCLUSION_SECTORS;
    if (at % mine->stride != mine->first) return NULL;
    return mine->horizon + (size_t)(at / mine->stride) * OCCLUSION_RINGS;
}

static int32_t down(float value) { return (int32_t)floorf(value); }

// Only sectors that it fills from side to side.
static void hide_behind(const sectors *mine, const map *m, const occlusion_land *land, const occlusion_outline *o) {
    float line = (float)rise_least(m->eye / land->solid, o->near, o->far);
    uint32_t ring = ring_of(o->far);
    int32_t end = down(o->last - SECTOR_MARGIN);
    for (int32_t sector = down(o->first + SECTOR_MARGIN) + 1; sector < end; ++sector) {
        float *rings = rings_of(mine, sector);
        if (rings != NULL && line > rings[ring]) rings[ring] = line;
    }
}

// From each ring on: the highest line of the rings up to it.
static void spread_outwards(const sectors *mine) {
    for (uint32_t sector = mine->first; sector < OCCLUSION_SECTORS; sector += mine->stride) {
        float *rings = rings_of(mine, (int32_t)sector);
        for (uint32_t i = 1; i < OCCLUSION_RINGS; ++i)
            if (rings[i - 1] > rings[i]) rings[i] = rings[i - 1];
    }
}

static bool is_seen(const sectors *mine, double eye_share, const occlusion_outline *o) {
    uint32_t ring = ring_of(o->near);
    double line = rise_most(eye_share, o->near, o->far) + RISE_MARGIN;
    int32_t last = down(o->last + SECTOR_MARGIN);
    for (int32_t sector = down(o->first - SECTOR_MARGIN); sector <= last; ++sector) {
        const float *rings = rings_of(mine, sector);
        if (rings != NULL && (ring == 0 || line >= rings[ring - 1])) return true;
    }
    return false;
}

static double high_of(const occlusion_input *input, uint32_t number) {
    if (number < input->land_count) return input->bounds[number].high;
    return vec3_length(input->spheres[number - input->land_count]) + input->sphere_radius;
}

static void set_all(uint64_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) words[i / OCCLUSION_WORD_THINGS] |= (uint64_t)1 << i % OCCLUSION_WORD_THINGS;
}

void occlusion_run(const occlusion_input *input, uint32_t first, uint32_t stride, const occlusion_room *room,
                   uint64_t *words) {
    uint32_t thing_count = input->land_count + input->sphere_count;
    map m = map_of(input->eye);
    memset(words, 0, occlusion_word_count(thing_count) * sizeof *words);
    if (!(m.eye < EYE_HIGHEST)) {
        set_all(words, thing_count);
        return;
    }
    sectors mine = {first, stride, room->horizon};
    for (uint32_t i = 0; i < occlusion_horizon_count(stride); ++i) room->horizon[i] = RISE_LOWEST;
    uint32_t count = find_outlines(input, &m, room->outlines, words);
    for (uint32_t i = 0; i < count && room->outlines[i].number < input->land_count; ++i)
        hide_behind(&mine, &m, &input->lands[room->outlines[i].number], &room->outlines[i]);
    spread_outwards(&mine);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t number = room->outlines[i].number;
        if (is_seen(&mine, m.eye / high_of(input, number), &room->outlines[i]))
            words[number / OCCLUSION_WORD_THINGS] |= (uint64_t)1 << number % OCCLUSION_WORD_THINGS;
    }
}

void occlusion_append(uint64_t *whole, const uint64_t *part, uint32_t word_count) {
    for (uint32_t i = 0; i < word_count; ++i) whole[i] |= part[i];
}

// --- in every frame ---

static nb_result occlusion_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    const planet_eye *eye = job_eye(context, p);
    nb_table chunks = p->streamer->chunks;
    occlusion_input input = {.eye = eye->position,
                             .frustum = frustum_of(&eye->camera),
                             .bounds = NB_STORE_VIEW(seen, p->world, chunks, CHUNK_BOUNDS, lod_bounds),
                             .lands = NB_STORE_VIEW(seen, p->world, chunks, CHUNK_LAND, occlusion_land),
                             .is_drawn = NB_STORE_VIEW(seen, p->world, chunks, CHUNK_IS_DRAWN, uint8_t),
                             .land_count = job_chunk_count(context, p),
                             .spheres = NB_STORE_VIEW(seen, p->world, p->planet->creatures, CREATURE_PLACE, vec3),
                             .sphere_count = job_creature_count(context, p),
                             .sphere_radius = PICTURE_CREATURE_RADIUS};
    uint32_t count = input.land_count + input.sphere_count, stride = context->job_count;
    occlusion_room room = {.horizon =
                               nb_arena_alloc(context->arena, occlusion_horizon_count(stride) * sizeof(float), 16),
                           .outlines = nb_arena_alloc(context->arena, (count + 1) * sizeof(occlusion_outline), 16)};
    uint64_t *words = job_output(context, occlusion_word_count(count) * sizeof *words);
    if (room.horizon == NULL || room.outlines == NULL || words == NULL) return NB_ERR_MEMORY;
    occlusion_run(&input, context->job_index, stride, &room, words);
    return NB_OK;
}

static nb_result occlusion_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint64_t *words = merge_note(context, p, outputs, &size_bytes);
    uint32_t count = occlusion_word_count(job_chunk_count(context, p) + job_creature_count(context, p));
    // Until all have told what they see, nothing is known to be hidden.
    p->made.seen_end = merge_parts_end(context, &p->seen_parts);
    if (p->seen_parts.count == 1) memset(p->made.seen, 0, sizeof p->made.seen);
    occlusion_append(p->made.seen, words, count);
    return NB_OK;
}

const nb_module_desc work_occlusion_module = {
    .name = "occlusion", .parallel = occlusion_job, .merge = occlusion_merge, .job_count = 2};
