// Chapter 5. The whole folder: optimisers, clipping, schedules.
//
// This folder knows parameters and their gradients, but not the layers they belong to.
#pragma once

#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/muon.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
