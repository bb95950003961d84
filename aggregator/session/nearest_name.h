// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace neurontrace {

// How many characters have to be changed, put in, left out or exchanged with their neighbour to
// make one name of the other. Pure; takes a time of the product of the lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// The name that was probably meant: the nearest, or one of which `name` is a part; of equals the
// first. Empty where none is near: more than a third of it would have to change.
std::string NearestName(std::string_view name, std::span<const std::string> names);

}  // namespace neurontrace
