// SPDX-License-Identifier: MIT
// Whatever comes late, twice or in the wrong order, and however often time was turned back: once all that is true has
// arrived, the state is that of a run in which nothing was late.

#include "frame/rollback/rollback_fixture.h"

#define TICK_MAX 120u
#define FRAME_MAX 1000u
#define LETTER_MAX 1024u

typedef struct letter {
    uint64_t frame, tick;
    bool is_state;
} letter;

// One run: its game, its own luck, and what is still on its way.
typedef struct run {
    game g;
    uint64_t luck;
    bool is_honest; // ticks get what is true
    nb_input_event got[TICK_MAX + 1];
    letter letters[LETTER_MAX];
    uint32_t letter_count;
    uint64_t frame;
    uint64_t sent_tick; // newest state that was taken
    bool is_lost;       // an input was refused that nothing else brings
} run;

// What is true of each tick: its command, and state and hash before it.
typedef struct truth {
    nb_input_event event;
    game_save save;
    uint64_t hash;
} truth;

// On the heap: synctest compares the static memory of the whole program around each tick.
static truth *truths; // of TICK_MAX + 1 ticks

static uint64_t roll(run *r, uint64_t count) { return test_random(&r->luck) % count; }

static void send_letter(run *r, uint64_t delay, uint64_t tick, bool is_state) {
    assert_true(r->letter_count < LETTER_MAX);
    r->letters[r->letter_count++] = (letter){r->frame + delay, tick, is_state};
}

// A guess in the place of what is true, which comes later, and sometimes twice.
static void feed(void *user, nb_tick_view *view) {
    run *r = user;
    uint64_t tick = view->tick->index;
    nb_input_event *event = &r->got[tick];
    *event = truths[tick].event;
    if (!r->is_honest && roll(r, 3) != 0) {
        event->code ^= (uint32_t)roll(r, 8);
        send_letter(r, 1 + roll(r, 15), tick, false);
        if (roll(r, 4) == 0) send_letter(r, 1 + roll(r, 15), tick, false);
    }
    view->commands = (nb_input_view){event, 1};
}

static void hand_in(run *r, const nb_context *context, const letter *l) {
    const truth *t = &truths[l->tick];
    nb_history_input input = {{NULL, 0}, {&t->event, 1}};
    if (l->is_state) {
        nb_result result = nb_context_correct_state(context, l->tick, t->save.bytes, t->save.size_bytes);
        if (result == NB_OK && l->tick > r->sent_tick) r->sent_tick = l->tick;
    } else if (nb_context_correct_input(context, l->tick, &input) != NB_OK && l->tick >= r->sent_tick) {
        r->is_lost = true;
    }
}

static void open_letters(game *g, const nb_context *context) {
    run *r = g->mail_user;
    uint32_t kept = 0;
    r->frame = context->frame_index;
    for (uint32_t i = 0; i < r->letter_count; ++i) {
        letter l = r->letters[i];
        if (l.frame > r->frame)
            r->letters[kept++] = l;
        else if (l.tick < game_now(g)) // else it was rewound, and will run anew
            hand_in(r, context, &l);
    }
    r->letter_count = kept;
}

static void run_open(run *r, uint64_t luck, bool is_honest, uint32_t tick_count_max) {
    memset(r, 0, sizeof *r);
    nb_engine_desc desc = game_desc(0);
    desc.history.tick_count_max = tick_count_max;
    game_open_desc(&r->g, desc);
    r->luck = luck;
    r->is_honest = is_honest;
    r->g.mail = open_letters;
    r->g.mail_user = r;
    nb_tick_watch watch = {.begin = feed, .user = r};
    assert_int_equal(nb_engine_watch_add(r->g.r.engine, &watch), NB_OK);
}

static void find_truth(uint64_t seed) {
    static run r;
    if (truths == NULL) truths = calloc(TICK_MAX + 1, sizeof *truths);
    assert_non_null(truths);
    for (uint32_t i = 0; i <= TICK_MAX; ++i) truths[i].event = game_event((uint32_t)test_random(&seed) % 4096);
    run_open(&r, seed, true, 128);
    for (uint32_t i = 0; i < TICK_MAX; ++i) {
        game_save_to(&r.g, &truths[i].save);
        truths[i].hash = game_hash(&r.g);
        run_ticks(&r.g.r, 1);
    }
    game_close(&r.g);
}

static void turn_back(run *r) {
    nb_history_stats stats = nb_history_stats_get(nb_engine_history(r->g.r.engine));
    uint64_t tick = stats.tick_oldest + roll(r, stats.tick_last - stats.tick_oldest + 1);
    assert_int_equal(nb_engine_rewind(r->g.r.engine, tick), NB_OK);
    r->sent_tick = 0;
    // What was wrong then, and put right later, is wrong again.
    for (uint64_t i = tick > 50 ? tick - 50 : 0; i < tick; ++i) send_letter(r, 1, i, false);
}

static void frame(run *r, bool turns_back) {
    uint64_t now = game_now(&r->g);
    assert_int_equal(nb_engine_frame_delta(r->g.r.engine, roll(r, 4) * 16666667), NB_OK);
    if (now > 12 && roll(r, 6) == 0) send_letter(r, 1 + roll(r, 4), now - roll(r, 10), true);
    if (turns_back && now > 20 && roll(r, 30) == 0) turn_back(r);
    assert_true(nb_store_is_valid(r->g.world));
}

TEST(late_truth_ends_in_the_same_state) {
    static run r;
    uint64_t seed = test_seed(__func__), run_count = test_size(40, 400, 20000), same_count = 0;
    for (uint64_t i = 0; i < run_count; ++i) {
        find_truth(test_random(&seed));
        run_open(&r, test_random(&seed), false, i % 4 == 3 ? 10 : 128);
        for (uint32_t j = 0; j < FRAME_MAX && game_now(&r.g) < TICK_MAX - 10; ++j) frame(&r, i % 2 == 1 && j < 200);
        r.is_honest = true;
        for (uint32_t j = 0; j < 20; ++j) assert_int_equal(nb_engine_frame_delta(r.g.r.engine, 0), NB_OK);
        assert_int_equal(r.letter_count, 0);
        bool is_same = game_hash(&r.g) == truths[game_now(&r.g)].hash;
        if (!is_same && !r.is_lost) fail_msg("run %llu differs", (unsigned long long)i);
        same_count += is_same && !r.is_lost;
        game_close(&r.g);
    }
    assert_true(same_count >= run_count / 4); // those with room for all that is late
}
