// SPDX-License-Identifier: MIT
// Particles.

#include "work_particles.h"

#include <string.h>

#include "nebula/random.h"
#include "picture_job.h"

// Share of its speed that the air takes a second.
#define DRAG 0.6f

#define LIFE_MIN_S 0.5f
#define LIFE_MORE_S 1.5f

// A dead particle waits for a few frames, so that a new emitter does not burst.
#define BIRTH_BITS 2

// Where a frame takes nothing from those before: particles that are there after five seconds at this rate. None lives
// as long.
#define RESTART_STEPS 300u
#define RESTART_STEP_S (1.0f / 60)

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

void particles_restart(const particles_input *input, uint32_t step_count, uint32_t first, uint32_t count,
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

// --- in every frame ---

static vec3 up_at(vec3 place) { return vec3_normal(place, (vec3){0, 1, 0}); }

// The campfires of the nearest home send up sparks, and the first animals that are near and walk raise dust.
static uint32_t place_emitters(const nb_context *context, const picture *p, particle_emitter *emitters) {
    nb_table creatures = p->planet->creatures;
    const planet_eye *eye = job_eye(context, p);
    const pose_body *bodies = NB_STORE_VIEW(context->snapshot, p->world, creatures, CREATURE_BODY, pose_body);
    float reach = 2 * job_finest_distance(context);
    uint32_t count = 0, animals = job_creature_count(context, p);
    for (uint32_t i = 0; i < HOME_FIRES; ++i) {
        vec3 at = p->lights[eye->home][i].position;
        emitters[count++] = (particle_emitter){.position = at,
                                               .up = up_at(at),
                                               .speed = 2.0f,
                                               .spread = 0.6f,
                                               .gravity = -0.8f,
                                               .colour = PICTURE_FIRE_COLOUR};
    }
    for (uint32_t row = 0; row < animals && count < PICTURE_EMITTERS; ++row) {
        vec3 line = vec3_sub(bodies[row].feet, eye->camera.position);
        if (bodies[row].is_moving <= 0 || vec3_length(line) > reach) continue;
        emitters[count++] = (particle_emitter){.position = bodies[row].feet,
                                               .up = bodies[row].up,
                                               .speed = 0.8f,
                                               .spread = 0.5f,
                                               .gravity = 2.5f,
                                               .colour = PICTURE_DUST_COLOUR};
    }
    return count;
}

typedef struct particles_head {
    uint32_t particle_count, sprite_count;
} particles_head;

static nb_result particles_job(const nb_context *context, void *user) {
    const picture *p = user;
    particle_emitter emitters[PICTURE_EMITTERS];
    uint32_t emitter_count = place_emitters(context, p, emitters);
    job_share mine = job_share_of(context, PICTURE_PARTICLES);
    particles_input input = {.particles = nb_snapshot_region(context->snapshot, p->particles_region, NULL),
                             .emitters = emitters,
                             .emitter_count = emitter_count,
                             .dt_s = (float)context->time->delta_ns / 1e9f,
                             .seed = p->planet->seed,
                             .frame = context->frame_index};
    particles_head *head = job_output(context, sizeof *head);
    particles_output out = {.particles = job_output(context, mine.count * sizeof(particle)),
                            .sprites = job_output(context, mine.count * sizeof(particle_sprite))};
    if (head == NULL || out.particles == NULL || out.sprites == NULL) return NB_ERR_MEMORY;
    if (p->is_restarted) {
        input.dt_s = RESTART_STEP_S, input.frame = job_eye(context, p)->tick;
        particles_restart(&input, RESTART_STEPS, mine.first, mine.count, &out);
    } else {
        particles_run(&input, mine.first, mine.count, &out);
    }
    *head = (particles_head){out.particle_count, out.sprite_count};
    return NB_OK;
}

static nb_result particles_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    if (merge_is_first(context, &p->particles_end)) p->particle_count = 0;
    const particles_head *head = merge_note(context, p, outputs, &size_bytes);
    const particle *particles = nb_output_list_next(outputs, head, NULL);
    memcpy(p->particles + p->particle_count, particles, head->particle_count * sizeof *particles);
    p->particle_count += head->particle_count;
    const particle_sprite *sprites = nb_output_list_next(outputs, particles, NULL);
    memcpy(p->made.sprites + p->now.sprite_count, sprites, head->sprite_count * sizeof *sprites);
    p->now.sprite_count += head->sprite_count;
    return NB_OK;
}

const nb_module_desc work_particles_module = {
    .name = "particles", .parallel = particles_job, .merge = particles_merge, .job_count = 2};
