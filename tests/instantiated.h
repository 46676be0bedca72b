// Templates that nearly every test uses: compiled once, in instantiated.cpp, and not again in every batch of files.
// Without this, the tests take an eighth longer to compile. (The standard allows it for types of one's own only. GCC's
// library does the same for std::string before C++20.)
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "autograd/variable.h"

#ifndef ORRERY_INSTANTIATE
#define ORRERY_INSTANTIATE extern template
#endif
ORRERY_INSTANTIATE class std::basic_string<char>;
ORRERY_INSTANTIATE class std::vector<std::string>;
ORRERY_INSTANTIATE class std::vector<double>;
ORRERY_INSTANTIATE class std::vector<orrery::i32>;
ORRERY_INSTANTIATE class std::vector<orrery::i64>;
ORRERY_INSTANTIATE class std::vector<orrery::Tensor>;
ORRERY_INSTANTIATE class std::vector<orrery::Variable>;
ORRERY_INSTANTIATE class nlohmann::basic_json<>;
ORRERY_INSTANTIATE class std::basic_regex<char>;
ORRERY_INSTANTIATE class std::regex_iterator<std::string::const_iterator>;
ORRERY_INSTANTIATE bool std::regex_search(std::string::const_iterator, std::string::const_iterator, std::smatch&,
                                          const std::regex&, std::regex_constants::match_flag_type);
#undef ORRERY_INSTANTIATE
