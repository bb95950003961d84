// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the bytes are, a reader either refuses them or keeps its promises, and stays
// usable. Method: every truncation and every flipped bit of chunks that hold everything, and
// columns made by hand that are wrong in one place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/fuzz_seed.h"
#include "lib/trace/chunk_format.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/event_chunk_test_support.h"
#include "lib/trace/limits.h"
#include "lib/trace/varint.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

std::string SmallChunk(uint64_t seed, uint32_t shapes, int events) {
  ExtremeEvents source(seed, shapes);
  EventChunkBuilder builder;
  for (int i = 0; i < events; ++i) {
    OwnedEvent event = source.Next();
    for (OwnedValue& value : event.values)
      value.text.resize(std::min<size_t>(value.text.size(), 9));
    EXPECT_TRUE(AppendTo(builder, event).ok());
  }
  return builder.Finish().bytes;
}

// Copies to the heap, so that a read past the end is one past an allocation.
absl::Status DecodeCopy(DecodedChunk& chunk, const std::string& bytes) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  absl::Status status = chunk.Decode({copy.data(), copy.size()});
  if (status.ok()) {
    EXPECT_EQ(BrokenPromise(chunk), "");
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(chunk.size(), 0u);
    EXPECT_TRUE(chunk.shapes().empty() && chunk.strings().empty());
  }
  EXPECT_TRUE(chunk.Decode({}).ok());  // nothing may point into `copy` from here on
  return status;
}

TEST(EventChunkHostileTest, RefusesEveryTruncation) {
  DecodedChunk chunk;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string whole = SmallChunk(seed, 6, 60);
    for (size_t size = 1; size < whole.size(); ++size) {
      ASSERT_FALSE(DecodeCopy(chunk, whole.substr(0, size)).ok()) << "seed " << seed << " " << size;
    }
    ASSERT_FALSE(DecodeCopy(chunk, whole + '\0').ok());
    ASSERT_TRUE(DecodeCopy(chunk, whole).ok());
  }
}

TEST(EventChunkHostileTest, KeepsItsPromisesWhateverBitIsFlipped) {
  DecodedChunk chunk;
  size_t taken = 0;
  for (uint64_t seed = 20; seed <= 24; ++seed) {
    std::string bytes = SmallChunk(seed, 5, 40);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      taken += DecodeCopy(chunk, bytes).ok();
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
    ASSERT_TRUE(DecodeCopy(chunk, bytes).ok());
  }
  EXPECT_GT(taken, 0u);  // many flips only change a value
}

TEST(EventChunkHostileTest, KeepsItsPromisesWithBytesAtRandom) {
  DecodedChunk chunk;
  SeededRandom random(77);
  const std::string whole = SmallChunk(3, 40, 400);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (uint64_t i = random.Next64() % 5; i < 5; ++i) {
      bytes[random.Next64() % bytes.size()] = static_cast<char>(random.Next64());
    }
    static_cast<void>(DecodeCopy(chunk, bytes));
  }
}

// Columns put together piece by piece. The default is one event of one shape without attributes.
struct Pieces {
  uint8_t version = chunk_format::kVersion;
  uint64_t events = 1, strings = 1, shapes = 1;
  std::string lengths{"\x01"}, text{"e"};
  std::string shape = std::string("\0\x01\x80\0\0", 5);  // type 0, start, timestamp only, no key
  std::string shape_of = std::string("\0", 1);
  std::string timestamps{"\x01\x05"};  // constant 5
  std::vector<std::string> fields = std::vector<std::string>(6);
  std::vector<std::string> attributes;

  std::string bytes() const {
    std::string out(1, static_cast<char>(version));
    const auto number = [&out](uint64_t value) {
      uint8_t varint[kVarintBytesMax];
      out.append(reinterpret_cast<char*>(varint), WriteVarint(value, varint) - varint);
    };
    const auto column = [&](const std::string& piece) {
      number(piece.size());
      out += piece;
    };
    number(events);
    number(strings);
    number(shapes);
    for (const auto* piece : {&lengths, &text, &shape, &shape_of, &timestamps}) column(*piece);
    for (const std::string& piece : fields) column(piece);
    for (const std::string& piece : attributes) column(piece);
    return out;
  }
  // One key of the event's shape, in its packed byte, and that key's column.
  void AddKey(int packed, const std::string& piece) {
    shape[4] = static_cast<char>(shape[4] + 1);
    shape += '\0';
    shape += static_cast<char>(packed);
    attributes.push_back(piece);
  }
};

void ExpectRefused(const Pieces& pieces, const std::string& message) {
  DecodedChunk chunk;
  EXPECT_THAT(std::string(DecodeCopy(chunk, pieces.bytes()).message()), HasSubstr(message));
}

TEST(EventChunkHostileTest, TakesColumnsMadeByHand) {
  Pieces pieces;
  pieces.AddKey(static_cast<int>(ValueType::kString), std::string("\x01\0", 2));
  pieces.AddKey(static_cast<int>(ValueType::kBool), "\x01");
  DecodedChunk chunk;
  const std::string bytes = pieces.bytes();
  ASSERT_TRUE(chunk.Decode(bytes).ok()) << chunk.Decode(bytes);
  EXPECT_EQ(chunk.timestamp_ns()[0], 5u);
  EXPECT_EQ(chunk.value(0, 0).text, "e");
  EXPECT_EQ(chunk.value(0, 1).bits, 1u);
}

TEST(EventChunkHostileTest, RefusesCountsBeyondTheLimits) {
  ExpectRefused({.version = 2}, "format version 2 is unsupported; this program reads 1");
  ExpectRefused({.events = 0}, "0 events");
  ExpectRefused({.events = limits::kChunkEventsMax + 1}, "outside the limits");
  ExpectRefused({.strings = limits::kChunkStringsMax + 1}, "outside the limits");
  ExpectRefused({.shapes = limits::kChunkShapesMax + 1}, "outside the limits");
  ExpectRefused({.shapes = 0}, "0 shapes");
  ExpectRefused({.events = ~0ull}, "outside the limits");
}

TEST(EventChunkHostileTest, RefusesStringsThatAreNotThere) {
  ExpectRefused({.lengths = "\x02"}, "string 0");
  ExpectRefused({.lengths = std::string("\0", 1)}, "extra bytes follow the last of 1");
  ExpectRefused({.strings = 2}, "string 1");
  ExpectRefused({.lengths = "\x81\x80\x04", .text = std::string(65'537, 'x')}, "string 0");
}

TEST(EventChunkHostileTest, RefusesShapesOutsideTheirEnums) {
  const auto refused = [](std::string shape) {
    ExpectRefused({.shape = std::move(shape)}, "shape 0 of 1 is malformed");
  };
  refused(std::string("\x01\x01\x80\0\0", 5));        // no such string
  refused(std::string("\0\x0c\x80\0\0", 5));          // no such phase
  refused(std::string("\0\x01\x01\0\0", 5));          // no timestamp
  refused(std::string("\0\x01\x80\x01\0", 5));        // quoted but absent
  refused(std::string("\0\x01\x80\0\x41", 5));        // 65 keys
  refused(std::string("\0\x01\x80\0\x01\x01\0", 7));  // a key without a name
  refused(std::string("\0\x01\x80\0\x01\0\x07", 7));  // no such type
  refused(std::string("\0\x01\x80\0\x01\0\x20", 7));  // no such scope
  ExpectRefused({.shape = std::string("\0\x01\x80\0\0\0", 6)}, "extra bytes follow the last");
}

TEST(EventChunkHostileTest, RefusesEventsOfNoShapeAndTimeThatRunsBackwards) {
  ExpectRefused({.shape_of = "\x01"}, "an event has shape 1, but there are only 1");
  ExpectRefused({.shape_of = std::string("\0\0", 2)}, "the shapes of 1 events do not have 1 bytes");
  Pieces pieces;
  pieces.events = 2;
  pieces.shape_of = std::string("\0\0", 2);
  pieces.timestamps = std::string("\0\x0a\x01", 3);  // deltas +5, -1
  ExpectRefused(pieces, "run backwards");
  ExpectRefused({.timestamps = "\x01"}, "timestamps ends inside a value");
  ExpectRefused({.timestamps = "\x01\x05\x05"}, "timestamps continues after its last value");
  ExpectRefused({.timestamps = "\x04\x05"}, "timestamps has an unknown encoding");
  ExpectRefused({.timestamps = "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02"}, "ends inside");
  ExpectRefused({.timestamps = std::string("\x02\x01\x0a\x01", 4)}, "index beyond its table");
  ExpectRefused({.timestamps = std::string("\x02\0\0", 3)}, "index beyond its table");
  Pieces absent;
  absent.fields[3] = "\x01\x05";
  ExpectRefused(absent, "column of thread_id continues after its last value");
}

TEST(EventChunkHostileTest, RefusesValuesThatTheirTypeCannotBe) {
  const auto refused = [](ValueType type, const std::string& column, const std::string& message) {
    Pieces pieces;
    pieces.AddKey(static_cast<int>(type), column);
    ExpectRefused(pieces, "key 0 of shape 0 " + message);
  };
  refused(ValueType::kString, "\x01\x01", "has an index beyond its table");
  refused(ValueType::kJson, std::string("\x01\xff\xff\xff\xff\x0f", 6), "has an index");
  refused(ValueType::kBool, "\x02", "continues after its last value");
  refused(ValueType::kBool, "", "ends inside a value");
  refused(ValueType::kDouble, std::string("\0\0\0\0\0\0\xf8\x7f", 8), "has a double that is not");
  refused(ValueType::kDouble, "1234567", "ends inside a value");
  refused(ValueType::kUint, "", "ends inside a value");
}

// A compressed claim of 64 MiB costs nothing before the frame itself says so.
TEST(EventChunkHostileTest, RefusesFramesThatLieAboutTheirSize) {
  const std::string frame = CompressColumns(std::string(1000, 'x'));
  std::string out;
  EXPECT_FALSE(UncompressColumns(frame, limits::kChunkColumnsBytesMax, out).ok());
  EXPECT_LT(out.capacity(), 1000u);
  SeededRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = frame;
    bytes[random.Next64() % bytes.size()] = static_cast<char>(random.Next64());
    const bool taken = UncompressColumns(bytes, 1000, out).ok();
    EXPECT_EQ(out.size(), taken ? 1000u : 0u);
  }
}

// Not a test: see lib/base/fuzz_seed.h.
TEST(EventChunkHostileTest, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, const std::string& content) {
    WriteFuzzSeed("chunk_decode_fuzzer", name, content);
  };
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const uint32_t shapes = seed == 8 ? 300 : static_cast<uint32_t>(seed);
    std::string columns = SmallChunk(seed, shapes, static_cast<int>(seed * 5));
    write("columns_" + std::to_string(seed), std::string(1, '\0') + columns);
  }
  const std::string columns = SmallChunk(9, 3, 20);
  const auto size = static_cast<uint32_t>(columns.size());
  write("frame", "\x01" + std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
                     CompressColumns(columns));
  write("one_event", std::string(1, '\0') + Pieces().bytes());
}

}  // namespace
}  // namespace neurontrace
