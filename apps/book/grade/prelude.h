// Chapter 3. What an exercise, its solution and its grader may include: read once, before any of them.
//
// An exercise is compiled inside a namespace of its own, so that many fit into one program; a header must not be read
// for the first time there.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "apps/book/grade/grader.h"
#include "autograd/apply.h"
#include "autograd/check/proof.h"
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/machine/memory.h"
#include "core/tensor_ops.h"
#include "nn/check/leakcheck.h"
#include "nn/check/proof.h"
#include "nn/nn.h"
#include "optim/optim.h"

using orrery::book::Grader;
