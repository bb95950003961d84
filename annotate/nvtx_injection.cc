// SPDX-License-Identifier: Apache-2.0
// The functions that NVTX looks for in a tool's library, and those that take its calls. They only
// translate; Annotator records. Texts are copied to the ring during the call, as they belong to the
// caller.
#include <stdint.h>
#include <string.h>

#include "annotate/annotator.h"
#include "annotate/nvtx_abi.h"

namespace neurontrace::annotate {

namespace {

// Room for a wide message as UTF-8.
struct MessageRoom {
  char text[kAnnotationMessageBytesMax];
};

void SetMessage(const char* message, MessageRoom*, Annotation* to) {
  if (message == nullptr) return;
  to->message = message;
  to->message_bytes = static_cast<uint32_t>(strnlen(message, kAnnotationMessageBytesMax + 1));
  if (to->message_bytes <= kAnnotationMessageBytesMax) return;
  to->is_message_cut = true;
  to->message_bytes = WholeCharacters(message, kAnnotationMessageBytesMax);
}

void SetMessage(const wchar_t* message, MessageRoom* room, Annotation* to) {
  to->message = room->text;
  to->message_bytes = CopyText(message, room->text, sizeof room->text, &to->is_message_cut);
}

void SetRegistered(const RegisteredText* message, Annotation* to) {
  to->message = message == nullptr ? NameTable::kOtherText : message->text;
  to->message_bytes = message == nullptr ? sizeof NameTable::kOtherText - 1 : message->bytes;
  to->is_message_cut = message != nullptr && message->is_cut;
}

void SetPayload(const NvtxAttributes& from, Annotation* to) {
  to->payload = from.payload.u64;
  switch (from.payload_type) {
    case 0:
      return;
    case kNvtxPayloadUint64:
      to->payload_type = AnnotationPayload::kUint;
      return;
    case kNvtxPayloadInt64:
      to->payload_type = AnnotationPayload::kInt;
      return;
    case kNvtxPayloadDouble:
      to->payload_type = AnnotationPayload::kDouble;
      return;
    case kNvtxPayloadUint32:
      to->payload_type = AnnotationPayload::kUint;
      to->payload = from.payload.u32;
      return;
    case kNvtxPayloadInt32:
      to->payload_type = AnnotationPayload::kInt;
      to->payload = static_cast<uint64_t>(int64_t{from.payload.i32});
      return;
    case kNvtxPayloadFloat: {
      to->payload_type = AnnotationPayload::kDouble;
      const double wide = static_cast<double>(from.payload.f32);
      memcpy(&to->payload, &wide, sizeof wide);
      return;
    }
    default:
      to->payload = 0;
      to->is_payload_unknown = true;
  }
}

// Attributes that are absent, or of a size that no version has, give an annotation without a name.
void SetAttributes(const NvtxAttributes* from, MessageRoom* room, Annotation* to) {
  if (from == nullptr || from->size < sizeof *from) return;
  to->category = from->category;
  to->has_color = from->color_type == kNvtxColorArgb;
  to->color = to->has_color ? from->color : 0;
  SetPayload(*from, to);
  switch (from->message_type) {
    case kNvtxMessageAscii:
      SetMessage(from->message.ascii, room, to);
      return;
    case kNvtxMessageWide:
      SetMessage(from->message.wide, room, to);
      return;
    case kNvtxMessageRegistered:
      SetRegistered(static_cast<const RegisteredText*>(from->message.registered), to);
      return;
    default:
      return;
  }
}

// Records a call with attributes in a domain, or with a plain text in the default domain.
int RecordEx(AnnotationType type, const void* domain, const NvtxAttributes* attributes,
             uint64_t range_id = 0) {
  Annotator& annotator = ProcessAnnotator();
  MessageRoom room;
  Annotation annotation{
      .type = type, .domain = annotator.names().FindDomain(domain), .range_id = range_id};
  SetAttributes(attributes, &room, &annotation);
  return annotator.Record(annotation);
}
template <typename Char>
int RecordText(AnnotationType type, const Char* message, uint64_t range_id = 0) {
  Annotator& annotator = ProcessAnnotator();
  MessageRoom room;
  Annotation annotation{
      .type = type, .domain = annotator.names().FindDomain(nullptr), .range_id = range_id};
  SetMessage(message, &room, &annotation);
  return annotator.Record(annotation);
}

bool IsRecording() { return ProcessAnnotator().IsRecording(); }

// --- The calls of NVTX, with the types of its tables ---------------------------------------------

void DomainMarkEx(void* domain, const NvtxAttributes* attributes) {
  if (IsRecording()) RecordEx(AnnotationType::kMark, domain, attributes);
}
void MarkEx(const NvtxAttributes* attributes) { DomainMarkEx(nullptr, attributes); }
template <typename Char>
void Mark(const Char* message) {
  if (IsRecording()) RecordText(AnnotationType::kMark, message);
}

int DomainRangePushEx(void* domain, const NvtxAttributes* attributes) {
  if (!IsRecording()) return kNvtxNoPushPopTracking;
  return RecordEx(AnnotationType::kPush, domain, attributes);
}
int RangePushEx(const NvtxAttributes* attributes) { return DomainRangePushEx(nullptr, attributes); }
template <typename Char>
int RangePush(const Char* message) {
  return IsRecording() ? RecordText(AnnotationType::kPush, message) : kNvtxNoPushPopTracking;
}
int DomainRangePop(void* domain) {
  return IsRecording() ? RecordEx(AnnotationType::kPop, domain, nullptr) : kNvtxNoPushPopTracking;
}
int RangePop() { return DomainRangePop(nullptr); }

// The id of a range that is not recorded is 0, whose end is ignored.
uint64_t DomainRangeStartEx(void* domain, const NvtxAttributes* attributes) {
  if (!IsRecording()) return 0;
  const uint64_t id = ProcessAnnotator().NextRangeId();
  RecordEx(AnnotationType::kStart, domain, attributes, id);
  return id;
}
uint64_t RangeStartEx(const NvtxAttributes* attributes) {
  return DomainRangeStartEx(nullptr, attributes);
}
template <typename Char>
uint64_t RangeStart(const Char* message) {
  if (!IsRecording()) return 0;
  const uint64_t id = ProcessAnnotator().NextRangeId();
  RecordText(AnnotationType::kStart, message, id);
  return id;
}
void DomainRangeEnd(void* domain, uint64_t id) {
  if (id != 0 && IsRecording()) RecordEx(AnnotationType::kEnd, domain, nullptr, id);
}
void RangeEnd(uint64_t id) { DomainRangeEnd(nullptr, id); }

// Names are kept whether or not anything is recorded, as they are given once.
template <typename Char>
void DomainNameCategory(void* domain, uint32_t category, const Char* name) {
  NameTable& names = ProcessAnnotator().names();
  names.AddCategory(*names.FindDomain(domain), category, name);
}
template <typename Char>
void NameCategory(uint32_t category, const Char* name) {
  DomainNameCategory(nullptr, category, name);
}
template <typename Char>
const void* DomainRegisterString(void*, const Char* text) {
  return ProcessAnnotator().names().AddRegistered(text);
}
template <typename Char>
const void* DomainCreate(const Char* name) {
  return ProcessAnnotator().names().AddDomain(name);
}

// One module's table. Functions that this NVTX does not have are skipped.
class Table {
 public:
  Table(const NvtxCallbacks& callbacks, int module) {
    if (callbacks.get_module_function_table(module, &places_, &size_) == 0) size_ = 0;
  }
  template <typename Id, typename Function>
  void Set(Id id, Function function) {
    const auto index = static_cast<unsigned>(id);
    if (index >= size_ || places_[index] == nullptr) return;
    *places_[index] = reinterpret_cast<NvtxFunction>(function);
  }

 private:
  NvtxTable places_ = nullptr;
  unsigned size_ = 0;
};

void FillCore(const NvtxCallbacks& callbacks) {
  Table table(callbacks, kNvtxModuleCore);
  table.Set(NvtxCore::kMarkEx, &MarkEx);
  table.Set(NvtxCore::kMarkA, &Mark<char>);
  table.Set(NvtxCore::kMarkW, &Mark<wchar_t>);
  table.Set(NvtxCore::kRangeStartEx, &RangeStartEx);
  table.Set(NvtxCore::kRangeStartA, &RangeStart<char>);
  table.Set(NvtxCore::kRangeStartW, &RangeStart<wchar_t>);
  table.Set(NvtxCore::kRangeEnd, &RangeEnd);
  table.Set(NvtxCore::kRangePushEx, &RangePushEx);
  table.Set(NvtxCore::kRangePushA, &RangePush<char>);
  table.Set(NvtxCore::kRangePushW, &RangePush<wchar_t>);
  table.Set(NvtxCore::kRangePop, &RangePop);
  table.Set(NvtxCore::kNameCategoryA, &NameCategory<char>);
  table.Set(NvtxCore::kNameCategoryW, &NameCategory<wchar_t>);
}

void FillCore2(const NvtxCallbacks& callbacks) {
  Table table(callbacks, kNvtxModuleCore2);
  table.Set(NvtxCore2::kDomainMarkEx, &DomainMarkEx);
  table.Set(NvtxCore2::kDomainRangeStartEx, &DomainRangeStartEx);
  table.Set(NvtxCore2::kDomainRangeEnd, &DomainRangeEnd);
  table.Set(NvtxCore2::kDomainRangePushEx, &DomainRangePushEx);
  table.Set(NvtxCore2::kDomainRangePop, &DomainRangePop);
  table.Set(NvtxCore2::kDomainNameCategoryA, &DomainNameCategory<char>);
  table.Set(NvtxCore2::kDomainNameCategoryW, &DomainNameCategory<wchar_t>);
  table.Set(NvtxCore2::kDomainRegisterStringA, &DomainRegisterString<char>);
  table.Set(NvtxCore2::kDomainRegisterStringW, &DomainRegisterString<wchar_t>);
  table.Set(NvtxCore2::kDomainCreateA, &DomainCreate<char>);
  table.Set(NvtxCore2::kDomainCreateW, &DomainCreate<wchar_t>);
}

}  // namespace

}  // namespace neurontrace::annotate

// Called by each copy of NVTX in the process, at its first use. Returns 1, or 0 if that copy offers
// no callbacks; NVTX then does nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    neurontrace::annotate::NvtxGetExportTable get_export_table) {
  using neurontrace::annotate::NvtxCallbacks;
  if (get_export_table == nullptr) return 0;
  const auto* const callbacks = static_cast<const NvtxCallbacks*>(
      get_export_table(neurontrace::annotate::kNvtxCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  neurontrace::annotate::FillCore(*callbacks);
  neurontrace::annotate::FillCore2(*callbacks);
  return 1;
}

// Called for each of NVTX's extensions, such as structured payloads. Theirs are not recorded; 1
// keeps NVTX from unloading this library.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(void*) {
  return 1;
}

// NVTX finds the function by this pointer where the library is preloaded.
extern "C" {
__attribute__((visibility("default"))) int (*InitializeInjectionNvtx2_fnptr)(
    neurontrace::annotate::NvtxGetExportTable) = &InitializeInjectionNvtx2;
}
