// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_streams.h"

#include <deque>
#include <optional>
#include <utility>

#include "agent/control_messages.h"
#include "lib/base/mutex.h"
#include "lib/wire/bidi_call.h"
#include "lib/wire/clock_messages.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {
namespace {

// One Upload call. Only forwards: delivery logic is in agent/upload, so that tests need no gRPC.
class GrpcUploadStream final : public UploadStream {
 public:
  using Call = BidiCall<v1::ChunkEnvelope, v1::UploadAck>;

  GrpcUploadStream(v1::AgentGateway::Stub& stub, const std::string& agent_id, TaskRunner& runner,
                   Listener& listener)
      : call_(runner, MakeContext(agent_id),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Upload(context, reactor);
              },
              {.on_message = [&listener](const v1::UploadAck& ack) { listener.OnAck(ack); },
               .on_written = [&listener] { listener.OnWritten(); },
               .on_closed = [&listener](const absl::Status& s) { listener.OnClosed(s); }}) {}

  void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) override {
    call_.Write(std::move(envelope));
  }

 private:
  // The aggregator learns from the metadata which agent's streams the call carries.
  static std::unique_ptr<grpc::ClientContext> MakeContext(const std::string& agent_id) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("neurontrace-agent-id", agent_id);
    return context;
  }

  Call call_;
};

// One Control call. An invalid order ends it from this side; on_closed of the call that follows is
// then dropped, as the listener has been informed already.
class GrpcControlStream final : public ControlStream {
 public:
  using Call = BidiCall<v1::AgentReport, v1::AgentOrder>;

  GrpcControlStream(v1::AgentGateway::Stub& stub, TaskRunner& runner, Listener& listener)
      : listener_(listener),
        call_(runner, std::make_unique<grpc::ClientContext>(),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Control(context, reactor);
              },
              {.on_message = [this](const v1::AgentOrder& order) { OnOrder(order); },
               .on_written = [&listener] { listener.OnWritten(); },
               .on_closed =
                   [this](const absl::Status& status) {
                     if (!closed_) listener_.OnClosed(status);
                   }}) {}

  void Send(const AgentReport& report) override {
    call_.Write(std::make_shared<v1::AgentReport>(ToMessage(report)));
  }

 private:
  // Messages may still arrive between the listener's OnClosed and the destruction.
  void OnOrder(const v1::AgentOrder& order) {
    if (closed_) return;
    const absl::Status status = DispatchOrder(order, listener_);
    if (status.ok()) return;
    closed_ = true;
    // Nothing of this object may be touched after this call: the listener destroys the stream.
    listener_.OnClosed(status);
  }

  Listener& listener_;
  bool closed_ = false;  // by an order that makes no sense
  Call call_;
};

using StubPointer = std::shared_ptr<v1::ClockGateway::Stub>;

// One Report call. The first message identifies this agent. Access is announced only when both the
// hello has been written and the aggregator has answered, in whichever order that happens.
class GrpcEvidenceStream final : public EvidenceStream {
 public:
  using Call = BidiCall<v1::ClockReport, v1::ClockOrder>;

  // The hello is the first message of the call; batches may follow once it is written.
  GrpcEvidenceStream(v1::ClockGateway::Stub& stub, const ClockIdentity& identity,
                     TaskRunner& runner, Listener& listener)
      : listener_(listener),
        call_(runner, std::make_unique<grpc::ClientContext>(),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Report(context, reactor);
              },
              {.on_message = [this](const v1::ClockOrder& order) { OnOrder(order); },
               .on_written =
                   [this] {
                     if (std::exchange(sent_hello_, true)) return listener_.OnWritten();
                     ReportAccess();
                   },
               .on_closed =
                   [this](const absl::Status& status) {
                     if (!closed_) listener_.OnClosed(status);
                   }}) {
    auto report = std::make_shared<v1::ClockReport>();
    ToProto(identity, report->mutable_hello());
    call_.Write(std::move(report));
  }

  void Send(const EvidenceBatch& batch) override {
    auto report = std::make_shared<v1::ClockReport>();
    v1::ClockEvidenceBatch& evidence = *report->mutable_evidence();
    evidence.set_number(batch.number);
    evidence.set_age_ns(batch.age_ns);
    evidence.set_observations(batch.observations);
    call_.Write(std::move(report));
  }

 private:
  void OnOrder(const v1::ClockOrder& order) {
    if (closed_) return;
    if (order.has_receipt()) return listener_.OnReceipt(order.receipt().number());
    if (!order.has_access()) return;  // of a newer aggregator
    const auto grant = FromProto(order.access());
    if (!grant.ok()) {
      closed_ = true;
      return listener_.OnClosed(grant.status());
    }
    // Probes go to the machine that this call reached, not to a name that is resolved again: behind
    // a load balancer that could be another aggregator with another timescale.
    const auto address = ProbeAddressOfPeer(call_.peer(), grant->udp_port);
    has_access_ = true;
    if (grant->udp_port != 0 && address.ok()) {
      access_ = ProbeAccess{.address = *address, .key_id = grant->key_id, .key = grant->key};
    }
    ReportAccess();
  }

  // Once the hello is written too, as batches may be sent from then on.
  void ReportAccess() {
    if (sent_hello_ && std::exchange(has_access_, false)) listener_.OnAccess(access_);
  }

  Listener& listener_;
  bool sent_hello_ = false;
  bool closed_ = false;      // by an order that makes no sense
  bool has_access_ = false;  // and has not passed it on yet
  std::optional<ProbeAccess> access_;
  Call call_;
};

// One Ask call. The time of arrival is read on gRPC's thread, before the message waits for the
// sequence, as the difference would widen the measured interval.
class GrpcProbeStream final : public ProbeStream {
 public:
  using Call = BidiCall<v1::ClockQuestion, v1::ClockAnswer>;

  GrpcProbeStream(v1::ClockGateway::Stub& stub, TaskRunner& runner, const HostClocks& clocks,
                  Listener& listener)
      : clocks_(clocks),
        listener_(listener),
        call_(runner, std::make_unique<grpc::ClientContext>(),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Ask(context, reactor);
              },
              {.on_message = [this](const v1::ClockAnswer& answer) { OnAnswer(answer); },
               .on_written = [this] { listener_.OnWritten(); },
               .on_closed = [this](const absl::Status& status) { listener_.OnClosed(status); },
               .on_arrival =
                   [this] {
                     const uint64_t raw_ns = clocks_.RawNs();
                     const MutexLock lock(mutex_);
                     arrivals_.push_back(raw_ns);
                   }}) {}

  // The sequence comes back with the answer, which tells the prober when it was sent.
  void Send(uint64_t sequence) override {
    auto question = std::make_shared<v1::ClockQuestion>();
    question->set_sequence(sequence);
    call_.Write(std::move(question));
  }

 private:
  // On the sequence: combines the answer with the time at which it arrived.
  void OnAnswer(const v1::ClockAnswer& answer) {
    ProbeReply reply{.sequence = answer.sequence(),
                     .reference_receive_ns = answer.reference_receive_ns(),
                     .reference_send_ns = answer.reference_send_ns(),
                     .reference_epoch = answer.reference_epoch()};
    {
      const MutexLock lock(mutex_);
      // on_arrival and on_message come in pairs and in order, so the front belongs to this answer.
      reply.receive_raw_ns = arrivals_.front();
      arrivals_.pop_front();
    }
    listener_.OnReply(reply);
  }

  const HostClocks& clocks_;
  Listener& listener_;
  Mutex mutex_;
  std::deque<uint64_t> arrivals_ NT_GUARDED_BY(mutex_);  // of the answers not passed on yet
  Call call_;                                            // the last: it ends before what it tells
};

}  // namespace

UploadConnector MakeGrpcUploadConnector(std::shared_ptr<grpc::Channel> channel,
                                        std::string agent_id, TaskRunner& runner) {
  std::shared_ptr<v1::AgentGateway::Stub> stub = v1::AgentGateway::NewStub(channel);
  return [stub = std::move(stub), agent_id = std::move(agent_id),
          &runner](UploadStream::Listener& listener) -> std::unique_ptr<UploadStream> {
    return std::make_unique<GrpcUploadStream>(*stub, agent_id, runner, listener);
  };
}

ControlConnector MakeGrpcControlConnector(std::shared_ptr<grpc::Channel> channel,
                                          TaskRunner& runner) {
  std::shared_ptr<v1::AgentGateway::Stub> stub = v1::AgentGateway::NewStub(channel);
  return [stub = std::move(stub),
          &runner](ControlStream::Listener& listener) -> std::unique_ptr<ControlStream> {
    return std::make_unique<GrpcControlStream>(*stub, runner, listener);
  };
}

EvidenceConnector MakeGrpcEvidenceConnector(std::shared_ptr<grpc::Channel> channel,
                                            const AgentInfo& info, TaskRunner& runner) {
  StubPointer stub = v1::ClockGateway::NewStub(channel);
  const ClockIdentity identity{info.agent_id, info.instance_id, info.boot_id};
  return [stub = std::move(stub), identity,
          &runner](EvidenceStream::Listener& listener) -> std::unique_ptr<EvidenceStream> {
    return std::make_unique<GrpcEvidenceStream>(*stub, identity, runner, listener);
  };
}

ProbeConnector MakeGrpcProbeConnector(std::shared_ptr<grpc::Channel> channel, TaskRunner& runner,
                                      const HostClocks& clocks) {
  StubPointer stub = v1::ClockGateway::NewStub(channel);
  return [stub = std::move(stub), &runner,
          &clocks](ProbeStream::Listener& listener) -> std::unique_ptr<ProbeStream> {
    return std::make_unique<GrpcProbeStream>(*stub, runner, clocks, listener);
  };
}

}  // namespace neurontrace
