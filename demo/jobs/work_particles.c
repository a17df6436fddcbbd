// SPDX-License-Identifier: MIT
// Particles.

#include "work_particles.h"

#include <string.h>

#include "nebula/random.h"

// Share of its speed that the air takes a second.
#define DRAG 0.6f

#define LIFE_MIN_S 0.5f
#define LIFE_MORE_S 1.5f

// A dead particle waits for a few frames, so that a new emitter does not burst.
#define BIRTH_BITS 2

static float unit(uint32_t bits) { return (float)(bits >> 8) * (1.0f / 16777216.0f); }

static particle born(const particles_input *input, uint32_t number) {
    particle p = {0};
    nb_random random = nb_random_make(input->seed, input->frame, PARTICLE_STREAM);
    nb_random_block block = nb_random_words(random, number);
    if ((block.words[3] & ((1u << BIRTH_BITS) - 1)) != 0) return p;
    const particle_emitter *emitter = &input->emitters[number % input->emitter_count];
    p.position = emitter->position;
    // Two directions across `up`: any that is not along it, and the one across both.
    vec3 other = {emitter->up.y, emitter->up.z, -emitter->up.x};
    vec3 side = vec3_normal(vec3_cross(emitter->up, other), (vec3){1, 0, 0}), across = vec3_cross(emitter->up, side);
    p.speed = vec3_add(vec3_scale(side, (2 * unit(block.words[0]) - 1) * emitter->spread),
                       vec3_scale(across, (2 * unit(block.words[1]) - 1) * emitter->spread));
    p.speed = vec3_add(p.speed, vec3_scale(emitter->up, (0.5f + 0.5f * unit(block.words[2])) * emitter->speed));
    p.life_s = LIFE_MIN_S + LIFE_MORE_S * unit(block.words[3]);
    return p;
}

static particle moved(const particle *from, const particle_emitter *emitter, float dt_s) {
    particle p = *from;
    p.age_s += dt_s;
    if (p.age_s >= p.life_s) return (particle){0};
    // The speed first: stable at any frame rate.
    float kept = 1 - DRAG * dt_s;
    p.speed = vec3_scale(p.speed, kept > 0 ? kept : 0);
    if (emitter != NULL) p.speed = vec3_sub(p.speed, vec3_scale(emitter->up, emitter->gravity * dt_s));
    p.position = vec3_add(p.position, vec3_scale(p.speed, dt_s));
    return p;
}

static particle_sprite sprite_of(const particle *p, uint32_t colour) {
    float left = 1 - p->age_s / p->life_s;
    return (particle_sprite){p->position, (uint32_t)(left * 255.0f) << 24 | (colour & 0xffffff)};
}

static const particle_emitter *emitter_of(const particles_input *input, uint32_t number) {
    return input->emitter_count > 0 ? &input->emitters[number % input->emitter_count] : NULL;
}

static particle next_of(const particles_input *input, uint32_t number, const particle *old) {
    const particle_emitter *emitter = emitter_of(input, number);
    if (old->life_s > 0) return moved(old, emitter, input->dt_s);
    return emitter != NULL && input->dt_s > 0 ? born(input, number) : (particle){0};
}

static void append(const particles_input *input, uint32_t number, particle next, particles_output *out) {
    const particle_emitter *emitter = emitter_of(input, number);
    out->particles[out->particle_count++] = next;
    if (next.life_s <= 0) return;
    out->sprites[out->sprite_count++] = sprite_of(&next, emitter != NULL ? emitter->colour : 0xffffff);
}

void particles_run(const particles_input *input, uint32_t first, uint32_t count, particles_output *out) {
    for (uint32_t i = first; i < first + count; ++i) append(input, i, next_of(input, i, &input->particles[i]), out);
}

void particles_run_anew(const particles_input *input, uint32_t step_count, uint32_t first, uint32_t count,
                        particles_output *out) {
    particles_input step = *input;
    for (uint32_t i = first; i < first + count; ++i) {
        particle now = {0};
        for (uint32_t left = step_count; left > 0; --left) {
            step.frame = input->frame - (left - 1);
            now = next_of(&step, i, &now);
        }
        append(input, i, now, out);
    }
}

void particles_append(particles_output *whole, const particles_output *part) {
    memcpy(whole->particles + whole->particle_count, part->particles, part->particle_count * sizeof(particle));
    memcpy(whole->sprites + whole->sprite_count, part->sprites, part->sprite_count * sizeof(particle_sprite));
    whole->particle_count += part->particle_count;
    whole->sprite_count += part->sprite_count;
}
