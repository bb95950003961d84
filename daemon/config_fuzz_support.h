// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/fuzz_input.h"

namespace neurontrace {

// A command line whose --config has any content at all: it is read, or it is said what is wrong.
// `read` takes argc and argv and returns an absl::StatusOr of a configuration.
template <typename Read>
void FuzzConfigFile(const uint8_t* data, size_t size, Read read) {
  static const int file = memfd_create("config", MFD_CLOEXEC);
  static std::string path = "/proc/self/fd/" + std::to_string(file);
  CheckPromise(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
               "the file can be written");
  std::string program = "neurontrace";
  std::string option = "--config";
  char* argv[] = {program.data(), option.data(), path.data(), nullptr};
  const auto config = read(3, argv);
  CheckPromise(config.ok() || !config.status().message().empty(), "it is said what is wrong");
}

}  // namespace neurontrace
