// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace neurontrace {

// What PyTorch for Neuron writes beside its traces: which operations an nrta_seq_id was submitted
// for. Agents store each entry of such a file as one metadata event of this type, in the stream of
// the file: the entry's nrta_seq_id in the field of that name, and three attributes in data scope,
// JSON arrays of integers and nulls ("[17,18]"). The n-th items of the three belong together.
inline constexpr std::string_view kFrameworkMappingEventType = "neurontrace.framework_mapping";
inline constexpr std::string_view kMappingSequenceKey = "seq_nr";
inline constexpr std::string_view kMappingThreadKey = "th_id";
inline constexpr std::string_view kMappingStreamKey = "stream_id";

// True for framework_mapping_<digits and underscores>.json, and the same with .gz; folders before
// it do not count.
bool IsFrameworkMappingName(std::string_view path);

}  // namespace neurontrace
