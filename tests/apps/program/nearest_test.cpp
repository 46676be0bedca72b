// Chapter 9. Tests of the search for the name that was meant.
#include "apps/program/nearest.h"

#include <doctest/doctest.h>

using orrery::edit_distance;
using orrery::nearest;

TEST_CASE("the distance of two words counts characters that are inserted, removed or replaced") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("steps", "steps") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("saturday", "sunday") == 3);
  CHECK(edit_distance("taks", "task") == 2);
}

TEST_CASE("the nearest name is the first of the smallest distance, and none if all are far away") {
  CHECK(nearest("--step", {"--seed", "--steps", "--stop"}) == "--steps");
  CHECK(nearest("--taks", {"--tasks", "--task"}) == "--tasks");
  CHECK(nearest("--learning", {"--seed", "--steps"}) == "");
  CHECK(nearest("-x", {"-h"}) == "");
  CHECK(nearest("--step", {}) == "");
}
