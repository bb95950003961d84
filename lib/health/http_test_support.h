// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

// For tests: HTTP over plain sockets, so that requests can be malformed.
namespace neurontrace {

// Opens a connection to the port on this machine, sends `request` and returns the descriptor, which
// the caller closes. A failure is a failed expectation.
inline int Send(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  return fd;
}

// Returns everything that the server sends until it closes the connection.
inline std::string Rest(int fd) {
  std::string reply;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) reply.append(buffer, n);
  return reply;
}

// Sends a request and returns the whole reply with its head.
inline std::string Ask(int port, const std::string& request) {
  const int fd = Send(port, request);
  std::string reply = Rest(fd);
  close(fd);
  return reply;
}

// Return the reply to a well-formed GET or POST.
inline std::string Get(int port, const std::string& path) {
  return Ask(port, "GET " + path + " HTTP/1.0\r\n\r\n");
}

inline std::string Post(int port, const std::string& path, const std::string& body,
                        const std::string& headers = "") {
  return Ask(port, "POST " + path + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
                       "\r\n" + headers + "\r\n" + body);
}

}  // namespace neurontrace
