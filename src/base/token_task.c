// SPDX-License-Identifier: MIT
// The count of tasks under a token. Queued and running tasks and the mark of the cancel share one word, so a task is
// either in the counts that the cancel returns or finds the word closed; never both, never neither.

#include "token.h"

// Half of what the queued half of the word can hold.
#define TASK_COUNT_MAX ((uint64_t)1 << 30)

// What one call does to the word.
typedef struct task_step {
    uint64_t needed;         // NBI_TOKEN_TASK_QUEUED or _RUNNING: one of these must be counted; 0 = nothing
    uint64_t change;         // added while the token is not cancelled
    uint64_t closed_change;  // added afterwards
    nb_result closed_result; // what is returned afterwards
} task_step;

static uint64_t queued_of(uint64_t tasks) { return (tasks & ~NBI_TOKEN_TASKS_CLOSED) / NBI_TOKEN_TASK_QUEUED; }
static uint64_t running_of(uint64_t tasks) { return tasks % NBI_TOKEN_TASK_QUEUED; }

static nb_result step_check(uint64_t tasks, const task_step *step) {
    if (step->needed == NBI_TOKEN_TASK_QUEUED) return queued_of(tasks) != 0 ? NB_OK : NB_ERR_MISUSE;
    if (step->needed == NBI_TOKEN_TASK_RUNNING) return running_of(tasks) != 0 ? NB_OK : NB_ERR_MISUSE;
    return queued_of(tasks) + running_of(tasks) < TASK_COUNT_MAX ? NB_OK : NB_ERR_RANGE;
}

static nb_result step_apply(nb_token *token, const task_step *step, const char *function) {
    if (token == NULL) return NB_OK;
    nb_result result = nbi_token_check(token, function);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    uint64_t tasks = nbi_atomic_load_relaxed_u64(&node->tasks);
    for (;;) {
        result = step_check(tasks, step);
        if (result != NB_OK) {
            return nbi_fail(&node->tree->hooks, NB_ITEM_TOKEN_ARGUMENT, result, function,
                            "'%s' counts %llu queued and %llu running tasks", node->label, nb_llu(queued_of(tasks)),
                            nb_llu(running_of(tasks)));
        }
        bool is_closed = (tasks & NBI_TOKEN_TASKS_CLOSED) != 0;
        uint64_t next = tasks + (is_closed ? step->closed_change : step->change);
        // One order with the RMW that closes the word in token_cancel.c.
        if (nbi_atomic_compare_exchange_seq_cst_u64(&node->tasks, &tasks, next)) {
            return is_closed ? step->closed_result : NB_OK;
        }
    }
}

nb_result nb_token_task_enter(nb_token *token) {
    const task_step step = {.change = NBI_TOKEN_TASK_QUEUED, .closed_result = NB_CANCELLED};
    return step_apply(token, &step, __func__);
}

nb_result nb_token_task_start(nb_token *token) {
    const task_step step = {.needed = NBI_TOKEN_TASK_QUEUED,
                            .change = NBI_TOKEN_TASK_RUNNING - NBI_TOKEN_TASK_QUEUED,
                            .closed_change = 0 - NBI_TOKEN_TASK_QUEUED,
                            .closed_result = NB_CANCELLED};
    return step_apply(token, &step, __func__);
}

nb_result nb_token_task_leave(nb_token *token) {
    const task_step step = {.needed = NBI_TOKEN_TASK_RUNNING,
                            .change = 0 - NBI_TOKEN_TASK_RUNNING,
                            .closed_change = 0 - NBI_TOKEN_TASK_RUNNING};
    return step_apply(token, &step, __func__);
}

nb_result nb_token_task_withdraw(nb_token *token) {
    const task_step step = {.needed = NBI_TOKEN_TASK_QUEUED,
                            .change = 0 - NBI_TOKEN_TASK_QUEUED,
                            .closed_change = 0 - NBI_TOKEN_TASK_QUEUED};
    return step_apply(token, &step, __func__);
}
