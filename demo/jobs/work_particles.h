// SPDX-License-Identifier: MIT
#pragma once

// Particles: dust that springs up and falls, sparks that rise and fade. A pool of a fixed size; a dead particle is born
// again at its emitter. Makes the next state of the pool and, beside it, what a graphics card would be given: the
// living ones alone, packed. Particles are drawn and never simulated, but they too are the same on every machine.

#include <stdint.h>

#include "../planet/vec.h"

typedef struct particle {
    vec3 position; // metres from the planet's middle
    vec3 speed;    // metres a second
    float age_s;
    float life_s; // 0 = dead
} particle;

typedef struct particle_emitter {
    vec3 position;
    vec3 up;         // of length 1, away from the planet's middle
    float speed;     // upwards, metres a second
    float spread;    // sideways, metres a second
    float gravity;   // metres a second, each second; below 0 it rises
    uint32_t colour; // 0xRRGGBB
} particle_emitter;

// What is uploaded for each living particle.
typedef struct particle_sprite {
    vec3 position;
    uint32_t colour; // 0xAARRGGBB; it fades with age
} particle_sprite;

typedef struct particles_input {
    const particle *particles;
    const particle_emitter *emitters;
    uint32_t emitter_count; // particle i belongs to emitter i modulo this; 0 = nothing is born
    float dt_s;             // since the last frame
    uint64_t seed, frame;   // what chance depends on, with the particle's number
} particles_input;

typedef struct particles_output {
    particle *particles; // room for count
    uint32_t particle_count;
    particle_sprite *sprites; // room for count
    uint32_t sprite_count;
} particles_output;

#define PARTICLE_STREAM 201 // of nb_random

// Appends the next state of particles first to first + count - 1, and the sprites of the living.
void particles_run(const particles_input *input, uint32_t first, uint32_t count, particles_output *out);

// The same from nothing: so many steps of dt_s, the last of them number `frame`, with the emitters where they are now.
// The pool of the frame before is not read: what comes out is the same whatever the frames were.
void particles_restart(const particles_input *input, uint32_t step_count, uint32_t first, uint32_t count,
                       particles_output *out);

// Appends a job's output to that of the jobs before it.
void particles_append(particles_output *whole, const particles_output *part);
