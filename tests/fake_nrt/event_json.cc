// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/event_json.h"

#include <string>

namespace neurontrace {
namespace {

bool AppendValue(FetchBuffer& out, const fake_nrt_form& form, fake_nrt_kind kind, uint64_t value) {
  switch (kind) {
    case FAKE_NRT_UNSIGNED:
      out.Number(value);
      return true;
    case FAKE_NRT_SIGNED:
      out.Signed(static_cast<int64_t>(value));
      return true;
    case FAKE_NRT_BOOL:
      out.Text(value != 0 ? "true" : "false");
      return true;
    case FAKE_NRT_HEX_STRING:
      out.Hexadecimal(value);
      out.Text("\"");
      return true;
    case FAKE_NRT_DECIMAL_STRING:
      out.Number(value);
      out.Text("\"");
      return true;
    case FAKE_NRT_STRING:
    case FAKE_NRT_RAW_JSON: {
      const auto& text = *reinterpret_cast<const std::string*>(static_cast<uintptr_t>(value));
      // Keeps room for all of the rest of the event behind the text.
      if (!out.Reserve(text.size() + form.fixed_bytes)) return false;
      out.Text(text);
      if (kind == FAKE_NRT_STRING) out.Text("\"");
      return true;
    }
  }
  return true;
}

}  // namespace

bool AppendEventJson(FetchBuffer& out, const RingEvent& event, uint32_t nc_idx,
                     uint64_t nc_local_id, int32_t worker_gid) {
  const fake_nrt_form& form = *event.form;
  if (!out.Reserve(form.fixed_bytes)) return false;
  out.Text(form.head);
  out.Number(static_cast<uint64_t>(nc_idx) << kCoreIdShift | nc_local_id);
  out.Text(",\"nc_idx\":");
  out.Number(nc_idx);
  out.Text(",\"nc_local_id\":");
  out.Number(nc_local_id);
  out.Text(",\"tracking_id\":");
  out.Number(event.tracking_id);
  out.Text(",\"thread_id\":");
  out.Number(event.thread_id);
  out.Text(",\"worker_gid\":");
  out.Signed(worker_gid);
  out.Text(",\"data\":{");
  for (size_t i = 0; i < form.fields.size(); ++i) {
    out.Text(form.fields[i].key);
    if (!AppendValue(out, form, form.fields[i].kind, event.values[i])) return false;
  }
  out.Text("},\"timestamp_ns\":");
  out.Number(event.timestamp_ns);
  if (event.has_nrta_seq_id != 0) {
    out.Text(",\"nrta_seq_id\":");
    out.Number(event.nrta_seq_id);
  }
  out.Text("}");
  return true;
}

}  // namespace neurontrace
