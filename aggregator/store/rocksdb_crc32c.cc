// SPDX-License-Identifier: Apache-2.0
// Debian builds RocksDB without SSE4.2, so its checksum of every byte that goes into the log and
// the blob files is a table: a tenth of the processor time of ingest. The linker (--wrap, see
// CMakeLists.txt) has RocksDB's calls of rocksdb::crc32c::Extend come here. Where RocksDB is a
// shared library, or has the instructions itself, nothing changes but who computes the same number.
#include <cstddef>
#include <cstdint>

#include "lib/base/crc32c.h"

// The names are what --wrap makes of the mangled one.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" uint32_t __wrap__ZN7rocksdb6crc32c6ExtendEjPKcm(uint32_t crc, const char* data,
                                                           size_t size) {
  return neurontrace::ExtendCrc32c(crc, data, size);
}
