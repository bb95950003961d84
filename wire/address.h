// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Addresses as people type them: HOST:PORT, where an IPv6 host stands in brackets. Pure.
namespace neurontrace {

// What is wrong with an address, with the way out; empty: nothing. A port is 0 to 65535.
std::string CheckAddress(const std::string& address);

// True for addresses that only this machine reaches.
bool IsLoopback(const std::string& address);

}  // namespace neurontrace
