// SPDX-License-Identifier: Apache-2.0
// Anything at all as a stored row of clocks, as several of them (each with a length of two bytes
// before it), or as the record of their fit: refused, or clocks that can be read at every time and
// come back from their own bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/clocks/clock_fit_record.h"
#include "aggregator/clocks/clock_rows.h"
#include "aggregator/clocks/clock_rows_test_support.h"
#include "lib/base/fuzz_input.h"

namespace neurontrace {
namespace {

void ReadRows(const std::vector<std::string>& rows) {
  const auto clocks = DecodeClockRows(rows);
  if (!clocks.ok()) return;
  CheckPromise(
      clocks->instances.size() + clocks->devices.size() + clocks->order.size() == rows.size(),
      "a row has one clock or one check");
  for (const InstanceClock& clock : clocks->instances) ReadEverywhere(clock);
  const auto written = EncodeClockRows(*clocks);
  const auto again = DecodeClockRows(written);
  CheckPromise(again.ok() && EncodeClockRows(*again) == written, "clocks survive a round trip");
}

void ReadRecord(const std::string& bytes) {
  const auto record = DecodeClockFitRecord(bytes);
  if (!record.ok()) return;
  const auto again = DecodeClockFitRecord(EncodeClockFitRecord(*record));
  CheckPromise(again.ok() && *again == *record, "a record survives a round trip");
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  ReadRecord(bytes);
  ReadRows({bytes});
  FuzzInput input(data, size);
  std::vector<std::string> rows;
  while (!input.empty()) {
    const size_t length = input.Byte() * size_t{256} + input.Byte();
    rows.emplace_back(input.Text(length));
  }
  if (rows.size() > 1) ReadRows(rows);
  return 0;
}
