// SPDX-License-Identifier: MIT
#pragma once

// The whole runtime on one OS thread: two engines play one game over a bad link, with workers, readers and io threads
// that are fibers of the schedule explorer, a virtual clock and a heap that fails. Everything follows from one seed, so
// a failure is repeated by its number. Faults come for the whole run (safety: nothing may ever be wrong), or stop at
// some point (liveness: soon after it everything is as if nothing had been).
//
// What must hold is in oracle.c, what goes wrong in faults.c, the game in game.c and errands.c, the link and what comes
// too late in link.c, an engine with its game in peer.c, a match of netplay beside them in match.c, a run in run.c.

#include "explore/explore.h"

#include "nebula/engine.h"
#include "nebula/netplay.h"
#include "nebula/rollback.h"

#define PEER_COUNT 2u
#define REFERENCE PEER_COUNT // the third engine: no faults, no workers, no network; it knows every input in time
#define TICK_NS UINT64_C(20000000)
#define TICK_LIMIT 1024u
#define TICK_COUNT_DEFAULT 48u

// A peer that is this far ahead of what it has heard waits. With what one frame may run, it is less than is kept.
#define WINDOW 16u
#define FRAME_TICK_MAX 6u
#define ROLLBACK_MAX 40u

// Of ParallelTasks, on the machine's clock, which is virtual as all else: fifty times what all that spins in a frame
// takes, and shorter than most sleeps of a job that is late.
#define FENCE_TIMEOUT_NS UINT64_C(10000000)

// After the faults have stopped: rounds in which everything must be well again, and then stay so.
#define RECOVER_ROUNDS 60u

// And for what a flood has left waiting, two events a tick.
#define BACKLOG_ROUNDS 128u
#define STEADY_ROUNDS 12u

#define PART_MAX 4u     // events of one peer in one tick, and commands
#define BACKLOG_MAX 24u // of both that wait for a tick with room
#define WATCHED_MAX 64u // events sent and not yet seen in a tick
#define EVENT_MARK 77   // of an event that was sent
#define ERRAND_MAX 192u
#define GUEST_COUNT 3u
#define TOKEN_COUNT 4u
#define HELD_MAX 3u
#define MAIL_MAX 96u
#define STATE_MAX 6u
#define STATE_BYTES 16384u
#define LIST_MAX 192u
#define UNIT_MAX 80u
#define SHOT_MAX 32u
#define PUFF_MAX 40u
#define JOB_COUNT 3u
#define BOUND_MAX 24u // tasks of one frame that belong to it
#define READER_COUNT 1u
#define MATCH_SEATS 3u
#define FORGER 2u // of them
#define MATCH_MAIL_MAX 48u
#define MATCH_TRUTH_MAX 256u // ticks between two players' confirmations, at most

typedef struct sim sim;

// What may go wrong. Each seed has some of them.
typedef enum fault {
    FAULT_HEAP,         // an allocation fails
    FAULT_THREAD,       // a thread does not start
    FAULT_LATE_JOB,     // a job of a frame sleeps
    FAULT_JOB,          // a job of a frame fails
    FAULT_HANDLER,      // a handler fails
    FAULT_OUTPUT,       // a job wants more memory for its outputs than there is
    FAULT_VIOLATION,    // a handler does what it must not
    FAULT_CANCEL,       // a token is cancelled
    FAULT_LOSS,         // a message is lost
    FAULT_COPY,         // a message comes twice
    FAULT_DELAY,        // a message comes late, after later ones
    FAULT_PARTITION,    // nothing comes through for a while
    FAULT_CORRUPT,      // the bytes of a state are not what was sent
    FAULT_FORGED_STATE, // a state that never was
    FAULT_FORGED_INPUT, // input that nobody gave
    FAULT_ABSURD,       // messages about ticks that there are not
    FAULT_CLOCK_JUMP,
    FAULT_CLOCK_STALL,
    FAULT_CLOCK_BACK,
    FAULT_SLOW_TICK,
    FAULT_INPUT_FLOOD,
    FAULT_COMMAND_FLOOD,
    FAULT_TASK_FLOOD,
    FAULT_READER,      // a reader holds a snapshot for long
    FAULT_MODULE,      // modules come, go and are replaced
    FAULT_ERRAND,      // a job of many frames fails
    FAULT_ERRAND_HANG, // or takes long
    FAULT_ERRAND_CANCEL,
    FAULT_ERRAND_FLOOD,
    FAULT_REWIND,         // somebody goes back in time and plays it again
    FAULT_WATCH,          // somebody watches the ticks for a while
    FAULT_PAUSE,          // the loop is paused, stepped, scaled
    FAULT_FORGED_MESSAGE, // a player of the match sends what cannot be
    FAULT_COUNT,
} fault;

typedef enum sim_mode { MODE_SAFETY, MODE_LIVENESS } sim_mode;

// What the seed decides before anything runs.
typedef struct sim_config {
    sim_mode mode;
    uint32_t tick_count;           // of the part with faults
    uint32_t worker_count;         // of each peer
    bool shares_scheduler;         // one for both peers
    bool has_reader;               // beside the frames
    bool has_tick_tasks;           // ticks use the scheduler
    bool disables;                 // modules that fail too often are disabled
    uint32_t task_count;           // of a scheduler
    uint32_t errand_count;         // of jobs of many frames at once
    uint32_t command_count;        // between two ticks
    uint32_t input_count;          // of the input queue
    size_t history_bytes;          // of the second peer
    uint32_t history_events;       // of it, for one tick; the same number of commands
    uint32_t state_period;         // frames between two states that are sent
    uint32_t chances[FAULT_COUNT]; // of 1024, wherever it may happen; 0 = not in this seed
} sim_config;

// --- the game ---

typedef struct list_entry {
    uint32_t number, payload;
} list_entry;

typedef struct game {
    nb_store *world;
    nb_table units, shots, sky, puffs, camera;
    struct {
        uint64_t score, digest[3];
    } plain;                   // a state in plain memory
    list_entry list[LIST_MAX]; // a state with callbacks
    uint32_t list_count;
    uint32_t tick_serial; // of puffs
    // Of local state: what it should be.
    uint32_t puff_count;
    uint64_t camera_count;
} game;

// --- jobs of many frames ---

typedef enum errand_step_kind {
    STEP_YIELD,
    STEP_CHECK,
    STEP_FRAME,
    STEP_IO,
    STEP_HANG,
    STEP_FAIL,
    STEP_KIND_COUNT,
} errand_step_kind;

typedef struct errand {
    uint32_t number;
    uint32_t step_count;
    uint8_t steps[4];
    bool commit_fails;
} errand;

typedef struct errand_record {
    nb_async_job job;
    bool is_live;      // accepted, not ended
    bool is_cancelled; // nb_async_cancel said NB_OK
    bool is_committed;
    uint32_t token; // + 1; 0 = none
} errand_record;

// --- what a tick gets ---

typedef struct part {
    nb_input_event events[PART_MAX], commands[PART_MAX];
    uint32_t event_count, command_count;
} part;

typedef struct composed {
    nb_input_event events[PEER_COUNT * PART_MAX], commands[PEER_COUNT * PART_MAX];
    uint32_t event_count, command_count;
} composed;

typedef struct backlog {
    nb_input_event events[BACKLOG_MAX];
    uint32_t count;
} backlog;

// A tick whose state was looked at, to be compared with the reference when that has come so far.
typedef struct glimpse {
    uint64_t tick_count, raw_hash;
} glimpse;

typedef struct guest {
    struct peer *owner;
    nb_module_id handle;
    uint32_t index;
    uint32_t attach_count, detach_count;
    bool is_wanted; // attached, as far as its host knows
    bool refuses;
} guest;

// A recorder of a kind.
typedef struct watcher {
    struct peer *owner;
    bool is_watching, has_tick;
    uint64_t tick_next;
} watcher;

typedef struct peer {
    sim *sim;
    uint32_t index;
    nb_engine *engine;
    nb_clock_manual clock;
    nb_snapshots *snapshots;
    nb_async *async;
    nb_input *input;
    game game;
    bool is_heap_armed; // allocations may fail
    uint64_t heap_calls;
    uint32_t heap_faults;
    uint64_t log_count;

    // Ticks.
    part own[TICK_LIMIT];
    bool got[TICK_LIMIT];     // the other's part
    bool refused[TICK_LIMIT]; // it came, but there was no place for it any more
    uint64_t run_count;       // ticks that have run, once or more often
    uint64_t received;        // of the other's parts, without a gap
    // The state after n ticks is as it should be where n <= received and n <= right_until.
    uint64_t right_until;
    uint64_t right_from;     // and before that many ticks, what is kept may be old
    uint64_t corrected_from; // in this frame; UINT64_MAX = nothing
    uint64_t state_tick;     // of the state handed in in this frame; 0 = none
    bool is_state_true, is_state_sound;
    uint64_t state_now;    // ticks that had run when it came
    uint64_t forged_until; // the latest tick of a state that was not true
    composed tick_input, message_input;
    backlog events, commands;
    glimpse glimpses[ROLLBACK_MAX + 2 * FRAME_TICK_MAX];
    uint32_t glimpse_count;

    // Input on its way, commands on theirs.
    nb_input_event watched[WATCHED_MAX];
    uint32_t watched_count;
    uint64_t folded_count; // of the input, as of the newest look
    bool was_input_full;
    uint32_t event_serial, command_serial, command_first; // serial - first wait for a tick

    // Expectations.
    uint32_t failures_certain, failures_possible; // in this frame
    uint64_t violation_count;
    uint64_t merge_frame;
    uint64_t merge_next;
    bool adopts_late; // outputs of the crowd
    nb_engine_stats before;
    uint64_t backwards_before; // frames whose clock was behind, as before
    nb_rollback_stats rolled_before;
    bool is_paused; // by the flow
    uint32_t pause_left;

    errand_record errands[ERRAND_MAX];
    uint32_t errand_count, errand_ended, published_count, discarded_count;
    nb_token *tokens[TOKEN_COUNT];
    bool is_token_cancelled[TOKEN_COUNT];
    const nb_snapshot *held[HELD_MAX];
    uint64_t held_hash[HELD_MAX];
    guest guests[GUEST_COUNT];
    watcher watcher;
    nb_module_id crowd;
    uint64_t retired_count, reclaimed_count;
    uint32_t running_jobs;
    uint64_t bound_count, bound_run_count; // tasks that belong to the frame
    uint64_t bound_frame;                  // the newest that had any, and where they have left their pages
    uint64_t *bound_pages[BOUND_MAX];
    nb_result frame_result;
    uint32_t heap_calls_in_frame, logs_in_frame;
    uint32_t steps_max;
    uint64_t frame_start_ns; // of the machine's clock
} peer;

// --- the link ---

typedef enum mail_kind { MAIL_NONE, MAIL_INPUT, MAIL_STATE, MAIL_FORGED_INPUT, MAIL_ABSURD } mail_kind;

typedef struct mail {
    mail_kind kind;
    uint32_t to;
    uint64_t due_round;
    uint64_t first, count; // ticks of input; a state's tick
    uint32_t state;        // which buffer
    uint64_t number;       // whatever a forgery needs
} mail;

typedef struct state_buffer {
    unsigned char bytes[STATE_BYTES];
    size_t size_bytes;
    uint64_t tick;
    uint32_t use_count; // letters that carry it
    bool is_true, is_sound;
} state_buffer;

// --- the match ---

typedef struct match_seat {
    uint32_t index;
    nb_engine *engine;
    nb_netplay *play;
    uint64_t sum;          // what is simulated
    uint64_t checked;      // confirmed ticks that were compared
    uint64_t ticks_before; // that had run before this round
} match_seat;

typedef struct match_letter {
    uint32_t from, to;
    uint64_t due_round;
    size_t size_bytes; // 0 = there is none
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
} match_letter;

typedef struct match {
    match_seat seats[MATCH_SEATS];
    match_letter letters[MATCH_MAIL_MAX];
    uint64_t truth[MATCH_TRUTH_MAX], truth_count; // hashes by tick count, the first that was confirmed
} match;

struct sim {
    sim_config config;
    bool is_calm;   // no faults any more
    bool is_steady; // nothing but the game any more
    bool is_told;   // by say
    uint64_t round;
    uint64_t trace;          // of all that happened
    nb_scheduler *scheduler; // where it is shared
    peer peers[PEER_COUNT + 1];
    uint64_t truth_count; // ticks that the reference has run
    uint64_t truth_raw[TICK_LIMIT + 1], truth_hash[TICK_LIMIT + 1];
    mail mails[MAIL_MAX];
    state_buffer states[STATE_MAX];
    uint64_t partition_until;
    nb_atomic_u32 is_reader_off;
    match match;
    uint64_t checks; // comparisons with the reference
};

// --- faults.c ---

void faults_plan(sim *s, sim_mode mode, uint32_t tick_count);
bool fault_happens(const sim *s, fault kind);
uint64_t sim_random(uint64_t below);
const char *fault_name(fault kind);

// The hooks of a peer's engine: a heap that may fail, a log that is looked at.
nb_hooks peer_hooks(peer *p);

// --- game.c ---

nb_result game_declare(game *g, nb_engine *engine);
nb_result game_attach(peer *p);
uint64_t game_raw_hash(const game *g);
nb_result game_mark(const nb_context *context, void *user);
void game_check_local(const peer *p);
bool snapshot_check(const peer *p, const nb_snapshot *snapshot, uint64_t *hash);

// --- crowd.c: the modules around the game ---

nb_result crowd_attach(peer *p);
void crowd_churn(peer *p);
void crowd_check(const peer *p);

// --- errands.c ---

void errands_submit(const nb_context *context, peer *p);
void errands_disturb(peer *p);
void errands_cancel_one(peer *p); // on any thread
void errands_check(const peer *p);

// --- link.c ---

nb_result link_reconcile(const nb_context *context, void *user);
void link_send(sim *s, peer *from);
void link_settle(peer *p);
bool link_is_quick(const sim *s);

// The input of a tick as the peer knows it.
void compose(const peer *p, uint64_t tick, composed *out);

// --- match.c: only in seeds with FAULT_FORGED_MESSAGE ---

void match_open(sim *s);
void match_round(sim *s);
void match_close(sim *s);
// NULL: all is well; else what is not.
const char *match_unwell(const sim *s);

// --- peer.c ---

void peer_open(sim *s, uint32_t index);
void peer_frame(peer *p);
void peer_close(peer *p);
void peer_send_input(peer *p);
void peer_forget_folded(peer *p);
nb_result peer_command(const nb_context *context, peer *p);

// Rewinds; the events and commands that wait for a tick are of the run that ends there.
void peer_rewind(peer *p, uint64_t tick);
void peer_go_back(peer *p);

// --- oracle.c ---

bool is_right(const peer *p, uint64_t tick_count);
void oracle_truth_advance(sim *s);
void oracle_glimpse(peer *p, uint64_t tick_count);
void oracle_before(peer *p);
void oracle_after(peer *p);
void oracle_log(peer *p, const nb_log_record *record);
// NULL: all is well; else what is not.
const char *oracle_unwell(const peer *p);
// Input waits for ticks to take it.
bool oracle_has_backlog(const peer *p);

static inline uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9E3779B97F4A7C15u ^ (b + 0xD1342543DE82EF95u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline void trace(sim *s, uint64_t value) { s->trace = mix(s->trace, value); }

// Where the run is to tell what happens.
NB_PRINTF(2, 3) void say(const peer *p, const char *format, ...);

// --- run.c ---

// One run, in a fiber of the explorer.
void run_main(void *user, uint32_t index);
