// Chapter 5. The whole folder: optimisers, clipping, averages, schedules, batches.
//
// This folder knows parameters and their gradients, but not the layers they belong to.
#pragma once

#include "optim/adam.h"
#include "optim/average.h"
#include "optim/batches.h"
#include "optim/clip.h"
#include "optim/muon.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
