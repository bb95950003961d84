// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Which events the insight rule reads. All others are ignored.
enum class InsightClass : uint8_t {
  kExecute = 0,    // nrt_execute: the host's call
  kPrepare,        // kbl_exec_pre
  kPost,           // kbl_exec_post
  kRun,            // nc_exec_running: the device ran
  kCollective,     // cc_running
  kDeviceBarrier,  // cc_exec_barrier
  kHostBarrier,    // enc_barrier
  kTransferIo,  // nrt_tensor_read, nrt_tensor_write, nrt_tensor_copy: input and output of tensors
  kMemory,      // allocations and frees of device memory, DMA
  // numerical_err, and what else reports a fault of the device. hw_notify is none: no public source
  // defines its `hint`, and the runtime notifies of harmless things too.
  kError,
};

// One span or instant of one core, as the insight rule reads it. A plain value.
//
// Times are nanoseconds by ONE clock per core, the host's, that need not be related to any other
// core's. Events of a core come in the order of their ends; an open one comes last, or whenever it
// is found to be open.
struct InsightEvent {
  uint32_t core = 0;  // index into the cores that the engine was made for
  InsightClass kind = InsightClass::kExecute;
  bool is_open = false;  // no stop is known: end_ns is how far the stream is known to reach
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t exec_id = 0;  // 0: unknown
  uint64_t op_id = 0;    // of kCollective; 0: unknown
  // Identifies the model within a job: a hash of its name, else of its id. 0: unknown.
  uint64_t model = 0;
  // Identifies the group that meets: a hash of the communicator's id (stream_id, gid) within its
  // job. 0: the whole job.
  uint64_t group = 0;
};

}  // namespace neurontrace
