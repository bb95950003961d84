// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/store/stored_bytes.h"
#include "trace/capture_spec.h"
#include "trace/ids.h"
#include "trace/loss.h"
#include "trace/rank_evidence.h"
#include "trace/remark.h"

// How the parts that several values of the store share are written: docs/formats/store.md,
// "Shared parts".
namespace neurontrace {

void WriteWorkerIdentity(const WorkerIdentity& worker, StoredBytesWriter& out);
WorkerIdentity ReadWorkerIdentity(StoredBytesReader& in);

void WriteStreamIdentity(const StreamIdentity& stream, StoredBytesWriter& out);
StreamIdentity ReadStreamIdentity(StoredBytesReader& in);

void WriteEvidence(const std::vector<RankEvidence>& evidence, StoredBytesWriter& out);
std::vector<RankEvidence> ReadEvidence(StoredBytesReader& in);

void WriteLosses(const std::vector<Loss>& losses, StoredBytesWriter& out);
std::vector<Loss> ReadLosses(StoredBytesReader& in);

void WriteRemarks(const std::vector<Remark>& remarks, StoredBytesWriter& out);
std::vector<Remark> ReadRemarks(StoredBytesReader& in);

void WriteStrings(const std::vector<std::string>& strings, StoredBytesWriter& out);
std::vector<std::string> ReadStrings(StoredBytesReader& in);

void WriteKeyValues(const std::vector<KeyValue>& values, StoredBytesWriter& out);
std::vector<KeyValue> ReadKeyValues(StoredBytesReader& in);

}  // namespace neurontrace
