// Chapter 5. The whole folder: optimisers, clipping, schedules.
//
// Knows parameters and their gradients, and nothing of the layers they belong to.
// Serves: optim/adam.h
#pragma once

#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
