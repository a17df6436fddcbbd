// SPDX-License-Identifier: MIT
#pragma once

// Timestamped input for a fixed-step loop: any thread sends events, and every event reaches exactly one tick, the one
// in whose slice of time it happened. Frames with no tick lose nothing, frames with two see nothing twice. The one
// rule: stamp events with the clock the loop uses, as early as possible.
//
//     nb_input *input = NULL;
//     if (nb_input_create(NULL, &input) != NB_OK) return;
//     nb_input_event press = {1000, NB_INPUT_PRESS, 0, 'w', {{0}}};
//     nb_input_send(input, &press); // any thread
//     nb_buttons buttons = {0};
//     nb_input_view view;
//     nb_input_take_tick(input, 16666667, &view); // in a tick: tick.input_until_ns
//     nb_buttons_apply(&buttons, &view);
//     if (nb_buttons_is_pressed(&buttons, 'w')) printf("w went down in this tick\n");
//     nb_input_destroy(input);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Largest event_count_max: 10 MB of queue; whoever needs more sends data, not input.
#define NB_INPUT_COUNT_LIMIT (1u << 16)

// Button codes nb_buttons keeps: keyboards need about 300 (USB usage ids go to 231), mice and pads fit above.
#define NB_BUTTON_COUNT_MAX 512u

typedef enum nb_input_kind {
    NB_INPUT_NONE = 0,
    NB_INPUT_PRESS,   // button `code` went down
    NB_INPUT_RELEASE, // button `code` went up
    NB_INPUT_MOTION,  // axis or pointer `code` moved; the payload says how
    NB_INPUT_TEXT,    // code is a Unicode code point
    NB_INPUT_COMMAND, // the program's own: what gameplay stages for a later tick
    NB_INPUT_KIND_COUNT,
} nb_input_kind;

typedef union nb_input_payload {
    int32_t i32[4];
    float f32[4];
    uint8_t bytes[16];
} nb_input_payload;

typedef struct nb_input_event {
    uint64_t timestamp_ns;    // when it happened, on the loop's clock
    uint16_t kind;            // nb_input_kind, or a program's own number from NB_INPUT_KIND_COUNT up
    uint16_t device;          // 0 = the only one or any
    uint32_t code;            // which button, axis or command
    nb_input_payload payload; // kept as it is
} nb_input_event;

NB_STATIC_ASSERT(sizeof(nb_input_event) == 32, "two events a cache line; recordings rely on it");

// Events handed out; valid until the call named at the function that gave them.
typedef struct nb_input_view {
    const nb_input_event *events; // ordered as that function says; NULL when there are none
    uint32_t count;
} nb_input_view;

typedef struct nb_input nb_input;

typedef struct nb_input_desc {
    uint32_t event_count_max; // events on their way and, again, waiting; a power of two, 2..NB_INPUT_COUNT_LIMIT;
                              // 0 = 1024, a mouse at 4000 Hz over a 250 ms frame
    void *memory;             // caller storage aligned to NB_CACHE_LINE; NULL = from the hooks' allocator
    size_t memory_bytes;      // of it, at least nb_input_memory_size
    nb_hooks hooks;           // zero = defaults
} nb_input_desc;

// sent = delivered + discarded + folded + waiting, whenever no thread is sending.
typedef struct nb_input_stats {
    uint64_t sent_count;         // accepted by nb_input_send
    uint64_t full_count;         // refused with NB_FULL
    uint64_t delivered_count;    // handed to a tick
    uint64_t discarded_count;    // thrown away by nb_input_discard
    uint64_t waiting_count;      // sent and not yet handed out
    uint64_t late_count;         // delivered to a later tick than their time asks for: sent after that tick
    uint64_t early_count;        // delivered to an earlier tick, because events from the future filled the queue
    uint64_t frame_missed_count; // left out of a frame's view because it was full
    uint64_t folded_count;       // for frames only: sent in a pause of the engine's loop, or while no tick came and
                                 // event_count_max events waited
    uint64_t net_count;          // beside the sent ones, handed to ticks: a button whose state folded events changed
    uint64_t lost_button_count;  // changes of buttons that no tick hears of: more than 256 buttons were down or folded
} nb_input_stats;

// Button states as of a tick (or of a frame, where fed from frame views). Zero is the state with nothing down.
typedef struct nb_buttons {
    uint64_t down[NB_BUTTON_COUNT_MAX / 64];     // bit = code: held after the newest events
    uint64_t pressed[NB_BUTTON_COUNT_MAX / 64];  // went down in this tick
    uint64_t released[NB_BUTTON_COUNT_MAX / 64]; // went up in this tick; a short tap is pressed and released in one
    uint64_t ignored_count;                      // events with a code too large
    uint16_t device;                             // events of other devices are left out; 0 = of any
} nb_buttons;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_input_desc nb_input_desc_default(void);

// Bytes of caller storage a queue needs; as in the desc, 0 means the default count.
// Thread: any. Owner: nothing. Fails: 0 for an event_count_max that is not allowed.
NB_API size_t nb_input_memory_size(uint32_t event_count_max);

// Creates a queue; desc NULL means all defaults.
// Thread: any. Owner: the caller, until nb_input_destroy; caller storage stays the caller's. Fails: NB_ERR_MEMORY,
// NB_ERR_MISUSE (out is NULL, a count that is no power of two, memory not aligned), NB_ERR_RANGE (a count out of
// bounds, memory too small).
NB_API nb_result nb_input_create(const nb_input_desc *desc, nb_input **out);

// Ends a queue with whatever it holds; NULL is fine.
// Thread: any, when no other thread uses it. Owner: the memory goes back. Fails: never.
NB_API void nb_input_destroy(nb_input *input);

// Hands an event over. Never blocks and never waits for another thread.
// Thread: any number of threads. Owner: the event is copied. Fails: NB_FULL, counted; NB_ERR_MISUSE.
NB_API nb_result nb_input_send(nb_input *input, const nb_input_event *event);

// The events that arrived since the call before, in order of arrival: the view of a frame, beside the ticks. They reach
// their ticks all the same.
// Thread: the loop's own. Owner: *view is valid until the next nb_input_begin_frame. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_input_begin_frame(nb_input *input, nb_input_view *view);

// The events of one tick, ordered by time and, at the same time, by arrival: all that happened before until_ns and that
// no earlier tick got. So what happened in dropped time or came late is in the next tick, and what has a time in the
// future waits for its tick, unless such events fill the queue. What is sent beyond event_count_max waits for the
// next tick, and so does an event behind one whose sender has not finished its call.
// Thread: the loop's own. Owner: *view is valid until the next nb_input_take_tick or nb_input_discard. Fails:
// NB_ERR_MISUSE.
NB_API nb_result nb_input_take_tick(nb_input *input, uint64_t until_ns, nb_input_view *view);

// Throws away all that waits for ticks, for example what was typed during a loading screen. The next view of a frame
// still shows what no frame has seen.
// Thread: the loop's own. Owner: views of ticks become invalid. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_input_discard(nb_input *input);

// Counters since creation.
// Thread: the loop's own. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_input_stats nb_input_stats_get(const nb_input *input);

// Starts a new tick's edges and applies its events: a press of a button that is up, a release of one that is down.
// Thread: the buttons' own. Owner: the caller's storage. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_buttons_apply(nb_buttons *buttons, const nb_input_view *view);

// Lets every held button go, as an edge of the newest tick: the window lost its focus.
// Thread: the buttons' own. Owner: the caller's storage. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_buttons_release_all(nb_buttons *buttons);

NB_INLINE bool nbi_buttons_bit(const uint64_t *bits, uint32_t code) {
    return code < NB_BUTTON_COUNT_MAX && ((bits[code / 64] >> (code % 64)) & 1u) != 0;
}

// Whether the button is held after the newest tick's events.
// Thread: the buttons' own. Owner: nothing. Fails: false for NULL and for a code too large.
NB_INLINE bool nb_buttons_is_down(const nb_buttons *buttons, uint32_t code) {
    return buttons != NULL && nbi_buttons_bit(buttons->down, code);
}

// Whether it went down in the newest tick, and in no other.
// Thread: the buttons' own. Owner: nothing. Fails: false for NULL and for a code too large.
NB_INLINE bool nb_buttons_is_pressed(const nb_buttons *buttons, uint32_t code) {
    return buttons != NULL && nbi_buttons_bit(buttons->pressed, code);
}

// Whether it went up in the newest tick, and in no other.
// Thread: the buttons' own. Owner: nothing. Fails: false for NULL and for a code too large.
NB_INLINE bool nb_buttons_is_released(const nb_buttons *buttons, uint32_t code) {
    return buttons != NULL && nbi_buttons_bit(buttons->released, code);
}

NB_EXTERN_C_END
