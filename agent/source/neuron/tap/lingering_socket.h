// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "lib/base/unique_fd.h"

namespace neurontrace {

// For tests: a TCP connection whose last close blocks for days, because what was sent is not read
// and SO_LINGER is set (socket(7)). Made by one thread.
struct LingeringSocket {
  LingeringSocket() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const UniqueFd door(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(door.get(), any, size), 0);
    EXPECT_EQ(listen(door.get(), 1), 0);
    EXPECT_EQ(getsockname(door.get(), any, &size), 0);
    EXPECT_EQ(connect(fd.get(), any, size), 0);
    peer = UniqueFd(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    constexpr linger kWait = {.l_onoff = 1, .l_linger = 1'000'000};
    EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &kWait, sizeof kWait), 0);
    const std::string much(size_t{1} << 16, 'x');
    while (send(fd.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
    }
  }
  UniqueFd fd;
  UniqueFd peer;  // closing it ends the waiting
};

}  // namespace neurontrace
