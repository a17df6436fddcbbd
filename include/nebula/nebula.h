// SPDX-License-Identifier: MIT
#pragma once

// Every public header at once. A program that uses one piece includes that piece's header alone.
//
//     printf("nebula %s\n", nb_version());

#include "nebula/arena.h"
#include "nebula/async.h"
#include "nebula/atomic.h"
#include "nebula/budget.h"
#include "nebula/channel.h"
#include "nebula/clock.h"
#include "nebula/context.h"
#include "nebula/engine.h"
#include "nebula/fence.h"
#include "nebula/frame_stats.h"
#include "nebula/handle.h"
#include "nebula/hash.h"
#include "nebula/hooks.h"
#include "nebula/input.h"
#include "nebula/interpolate.h"
#include "nebula/label.h"
#include "nebula/log_items.h"
#include "nebula/log_service.h"
#include "nebula/loop.h"
#include "nebula/phase.h"
#include "nebula/random.h"
#include "nebula/service.h"
#include "nebula/snapshot.h"
#include "nebula/state.h"
#include "nebula/tasks.h"
#include "nebula/thread_arena.h"
#include "nebula/timeline.h"
#include "nebula/token.h"
#include "nebula/trace.h"
#include "nebula/types.h"
#include "nebula/world.h"
#include "nebula/world_view.h"
