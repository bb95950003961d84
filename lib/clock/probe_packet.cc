// SPDX-License-Identifier: Apache-2.0
#include "lib/clock/probe_packet.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace neurontrace {
namespace {

constexpr uint8_t kMagic[4] = {'N', 'T', 'P', 'B'};
constexpr uint8_t kVersion = 1;
enum class Kind : uint8_t { kQuestion = 1, kAnswer = 2 };

// Offsets of the fields in docs/formats/probe.md. Numbers are little endian, and bytes that no
// field covers are zero.
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 5;
constexpr size_t kKeyIdAt = 8;
constexpr size_t kSequenceAt = 16;
constexpr size_t kReceiveAt = 24;
constexpr size_t kSendAt = 32;
constexpr size_t kEpochAt = 40;
constexpr size_t kCodeAt = 48;
constexpr size_t kCodeBytes = kProbePacketBytes - kCodeAt;
constexpr size_t kDigestBytes = 32;

// Aborts: the library is broken, or there is no memory. Unauthenticated probes would be worse than
// none.
void CheckCrypto(bool good) {
  if (good) return;
  fputs("libcrypto cannot do HMAC-SHA-256\n", stderr);
  abort();
}

// Copies the machine's own representation: every platform this runs on is little endian.
template <typename T>
void Put(ProbePacket& packet, size_t at, T value) {
  memcpy(packet.data() + at, &value, sizeof(value));
}

template <typename T>
T Get(std::string_view packet, size_t at) {
  T value;
  memcpy(&value, packet.data() + at, sizeof(value));
  return value;
}

// Both kinds have the same length, so that the responder cannot be used to amplify traffic to a
// forged address.
ProbePacket Begin(Kind kind, uint64_t key_id, uint64_t sequence) {
  ProbePacket packet{};
  memcpy(packet.data(), kMagic, sizeof(kMagic));
  packet[kVersionAt] = kVersion;
  packet[kKindAt] = static_cast<uint8_t>(kind);
  Put(packet, kKeyIdAt, key_id);
  Put(packet, kSequenceAt, sequence);
  return packet;
}

// Checks the form of a packet, not its code: length, magic, version and kind.
bool IsOfKind(std::string_view packet, Kind kind) {
  return packet.size() == kProbePacketBytes && memcmp(packet.data(), kMagic, sizeof(kMagic)) == 0 &&
         Get<uint8_t>(packet, kVersionAt) == kVersion &&
         Get<uint8_t>(packet, kKindAt) == static_cast<uint8_t>(kind);
}

}  // namespace

ProbeKey MakeProbeKey(Random& random) {
  ProbeKey key;
  for (size_t i = 0; i < key.size(); i += sizeof(uint64_t)) {
    const uint64_t bits = random.Next64();
    memcpy(key.data() + i, &bits, sizeof(bits));
  }
  return key;
}

void ProbeCipher::FreeContext::operator()(evp_mac_ctx_st* context) const {
  EVP_MAC_CTX_free(context);
}

ProbeCipher::ProbeCipher(const ProbeKey& key) {
  EVP_MAC* const mac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  CheckCrypto(mac != nullptr);
  context_.reset(EVP_MAC_CTX_new(mac));
  // The context keeps its own reference.
  EVP_MAC_free(mac);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  CheckCrypto(context_ != nullptr &&
              EVP_MAC_init(context_.get(), key.data(), key.size(), parameters) == 1);
}

ProbeCipher::~ProbeCipher() = default;
ProbeCipher::ProbeCipher(ProbeCipher&&) noexcept = default;
ProbeCipher& ProbeCipher::operator=(ProbeCipher&&) noexcept = default;

void ProbeCipher::Seal(ProbePacket& packet) {
  uint8_t digest[kDigestBytes];
  size_t bytes = 0;
  // Initialising without a key restarts the computation with the key that the context has, which
  // saves hashing it.
  CheckCrypto(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1 &&
              EVP_MAC_update(context_.get(), packet.data(), kCodeAt) == 1 &&
              EVP_MAC_final(context_.get(), digest, &bytes, sizeof(digest)) == 1 &&
              bytes == sizeof(digest));
  memcpy(packet.data() + kCodeAt, digest, kCodeBytes);
}

bool ProbeCipher::IsGenuine(std::string_view packet) {
  ProbePacket again;
  memcpy(again.data(), packet.data(), kCodeAt);
  Seal(again);
  // Compares in constant time, so that response times do not reveal how many bytes of a forged code
  // are right.
  return CRYPTO_memcmp(again.data() + kCodeAt, packet.data() + kCodeAt, kCodeBytes) == 0;
}

ProbePacket ProbeCipher::Encode(const ProbeQuestion& question) {
  ProbePacket packet = Begin(Kind::kQuestion, question.key_id, question.sequence);
  Seal(packet);
  return packet;
}

ProbePacket ProbeCipher::Encode(const ProbeAnswer& answer) {
  ProbePacket packet = Begin(Kind::kAnswer, answer.key_id, answer.sequence);
  Put(packet, kReceiveAt, answer.reference_receive_ns);
  Put(packet, kSendAt, answer.reference_send_ns);
  Put(packet, kEpochAt, answer.reference_epoch);
  Seal(packet);
  return packet;
}

std::optional<ProbeQuestion> ProbeCipher::DecodeQuestion(std::string_view packet) {
  if (!IsOfKind(packet, Kind::kQuestion) || !IsGenuine(packet)) return std::nullopt;
  return ProbeQuestion{Get<uint64_t>(packet, kKeyIdAt), Get<uint64_t>(packet, kSequenceAt)};
}

std::optional<ProbeAnswer> ProbeCipher::DecodeAnswer(std::string_view packet) {
  if (!IsOfKind(packet, Kind::kAnswer) || !IsGenuine(packet)) return std::nullopt;
  return ProbeAnswer{.key_id = Get<uint64_t>(packet, kKeyIdAt),
                     .sequence = Get<uint64_t>(packet, kSequenceAt),
                     .reference_receive_ns = Get<uint64_t>(packet, kReceiveAt),
                     .reference_send_ns = Get<uint64_t>(packet, kSendAt),
                     .reference_epoch = Get<uint32_t>(packet, kEpochAt)};
}

std::optional<uint64_t> KeyIdOfQuestion(std::string_view packet) {
  if (!IsOfKind(packet, Kind::kQuestion)) return std::nullopt;
  return Get<uint64_t>(packet, kKeyIdAt);
}

}  // namespace neurontrace
