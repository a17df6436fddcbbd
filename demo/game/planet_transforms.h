// SPDX-License-Identifier: MIT
#pragma once

// How the planet looks between two ticks: bodies of animals, and the eye of the explorer that is followed, into columns
// that are local to this machine. The one rule: the tick never reads what is written here, so the frame rate does not
// change the state.

#include "planet.h"

// Handlers of the module "planet". The first two surround a rollback: they note where explorers are before ticks are
// simulated again, and how far each has moved afterwards. That distance is blended out over some frames.
nb_result planet_predict(const nb_context *context, void *user);
nb_result planet_correct(const nb_context *context, void *user);

// In Transforms: writes CREATURE_PLACE, CREATURE_BODY and the table "eye".
nb_result planet_transform(const nb_context *context, void *user);
