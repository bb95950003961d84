// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/event_form.h"

#include <array>
#include <cstdio>

namespace neurontrace {
namespace {

// The runtime's own list, as far as its names are publicly known.
constexpr std::array kListedTypes = {
    "generic",
    "nrt_load",
    "nrt_execute",
    "kmgr_exec_core",
    "nrt_load_collectives",
    "cc_exec_barrier",
    "nc_exec_running",
    "cc_running",
    "nrt_tensor_read",
    "nrt_tensor_write",
    "nrt_tensor_read_batch",
    "nrt_tensor_write_batch",
    "numerical_err",
    "enc_barrier_recv",
    "enc_barrier_send",
    "enc_barrier",
    "kbl_exec_pre",
    "kbl_exec_core",
    "kbl_exec_wait",
    "kbl_exec_post",
    "nrt_model_switch",
    "nrt_model_submit",
    "nrt_async_sema_wait",
    "hw_notify",
    "timestamp_sync_point",
    "nc_model_switch",
    "nrt_tensor_allocate",
    "nrt_tensor_free",
    "tensor_block_while_exec",
    "dmem_buf_copyin",
    "dmem_buf_copyout",
    "dmem_buf_batch_copyin",
    "dmem_buf_batch_copyout",
    "nrt_dma_mem_alloc",
    "nrt_dma_mem_dealloc",
    "exec_consume_tpb_status_notifications",
    "exec_consume_cc_core_notifications",
    "notification_consume_errors",
    "exec_consume_gpsimd_stdio",
    "nrta_execute_schedule",
    "nrt_profile_add_node_info",
};

void AppendUnicodeEscape(std::string& out, uint32_t unit) {
  char text[8];
  std::snprintf(text, sizeof(text), "\\u%04x", unit & 0xffff);
  out.append(text);
}

// Decodes one code point at the front of `utf8`, or U+FFFD for one byte that is no UTF-8.
uint32_t ReadCodePoint(std::string_view& utf8) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(utf8[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80             ? 1
                        : (first & 0xe0) == 0xc0 ? 2
                        : (first & 0xf0) == 0xe0 ? 3
                        : (first & 0xf8) == 0xf0 ? 4
                                                 : 0;
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (length == 1) {
    utf8.remove_prefix(1);
    return first;
  }
  if (length == 0 || utf8.size() < length) {
    utf8.remove_prefix(1);
    return 0xfffd;
  }
  uint32_t point = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      utf8.remove_prefix(1);
      return 0xfffd;
    }
    point = point << 6 | (byte(i) & 0x3f);
  }
  utf8.remove_prefix(length);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return point < kLeast[length] || point > 0x10ffff || surrogate ? 0xfffd : point;
}

}  // namespace

void AppendEscaped(std::string& out, std::string_view utf8) {
  while (!utf8.empty()) {
    const uint32_t point = ReadCodePoint(utf8);
    if (point == '"' || point == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(point));
    } else if (point == '\n') {
      out.append("\\n");
    } else if (point == '\t') {
      out.append("\\t");
    } else if (point >= 0x20 && point < 0x7f) {
      out.push_back(static_cast<char>(point));
    } else if (point < 0x10000) {
      AppendUnicodeEscape(out, point);
    } else {
      AppendUnicodeEscape(out, 0xd800 + ((point - 0x10000) >> 10));
      AppendUnicodeEscape(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
}

FormTable::FormTable() : listed_types_(kListedTypes.begin(), kListedTypes.end()) {
  for (const std::string& type : listed_types_) {
    types_.emplace(type, static_cast<uint16_t>(types_.size()));
  }
}

const fake_nrt_form* FormTable::Define(std::string_view event_type, std::string_view phase,
                                       const fake_nrt_field* fields, size_t count) {
  if (count > FAKE_NRT_VALUES_MAX) return nullptr;
  const std::lock_guard lock(mutex_);
  auto type = types_.find(std::string(event_type));
  if (type == types_.end()) {
    if (types_.size() == kEventTypesMax) return nullptr;
    type = types_.emplace(event_type, static_cast<uint16_t>(types_.size())).first;
  }
  fake_nrt_form& form = forms_.emplace_back();
  form.type = type->second;
  form.head = "{\"event_type\":\"";
  AppendEscaped(form.head, event_type);
  form.head += "\",\"phase\":\"";
  AppendEscaped(form.head, phase);
  form.head += "\",\"id\":";
  form.fixed_bytes = form.head.size() + 320;  // the other keys and eight numbers of 20 digits
  for (size_t i = 0; i < count; ++i) {
    fake_nrt_form::Field field{.key = i == 0 ? "\"" : ",\"", .kind = fields[i].kind};
    AppendEscaped(field.key, fields[i].key);
    field.key += "\":";
    if (field.kind == FAKE_NRT_STRING || field.kind == FAKE_NRT_DECIMAL_STRING) field.key += '"';
    if (field.kind == FAKE_NRT_HEX_STRING) field.key += "\"0x";
    form.fixed_bytes += field.key.size() + 24;
    form.fields.push_back(std::move(field));
  }
  return &form;
}

uint64_t FormTable::InternRaw(std::string_view json) {
  const std::lock_guard lock(mutex_);
  const auto [entry, added] = interned_.try_emplace(std::string(json), nullptr);
  if (added) entry->second = &texts_.emplace_back(json);
  return reinterpret_cast<uintptr_t>(entry->second);
}

uint64_t FormTable::InternEscaped(std::string_view utf8) {
  std::string escaped;
  AppendEscaped(escaped, utf8);
  return InternRaw(escaped);
}

int FormTable::FindListed(std::string_view event_type) const {
  for (size_t i = 0; i < listed_types_.size(); ++i) {
    if (listed_types_[i] == event_type) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace neurontrace
