// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/event_linker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "aggregator/timeline/framework_names.h"
#include "lib/base/json_writer.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// A device's clock can place an event so far from where its host's clock does.
constexpr uint64_t kDeviceSlackNs = 10'000'000;

bool IsOfCollective(const LinkedEvent& event) {
  return event.type == DerivedType::kCollective || event.type == DerivedType::kHostBarrier;
}

// Returns whether the event is in a collective whose last arrival the clocks do not tell.
bool HasUnknownOrder(const EventLinks& links, LinkDirection direction) {
  bool has_peer = false;
  for (const EventLink& link : links.links) {
    if (link.kind != kCollectiveLink) continue;
    if (link.direction == direction) return false;
    has_peer = has_peer || link.direction == LinkDirection::kPeer;
  }
  return has_peer;
}

// Returns the links that a chain follows. Of a collective that is the last to arrive alone:
// everybody waited for it. What waited for an event are all who arrived before.
std::vector<EventLink> LinksToFollow(const EventLinks& links, LinkDirection direction) {
  std::vector<EventLink> out;
  bool has_collective = false;
  for (const EventLink& link : links.links) {
    if (!link.is_direct || link.direction != direction) continue;
    if (link.kind == kCollectiveLink && direction == LinkDirection::kUpstream) {
      if (std::exchange(has_collective, true)) continue;
    }
    out.push_back(link);
  }
  return out;
}

}  // namespace

const StreamDescription* EventLinker::FindStream(uint32_t number) const {
  const auto& streams = layout_.capture().streams;
  const auto found = std::ranges::find(streams, number, &StreamDescription::number);
  return found == streams.end() ? nullptr : &*found;
}

EventLinker::Window EventLinker::WindowAround(const LinkedEvent& event, uint64_t reach_ns) {
  const uint64_t end_ns =
      std::min(event.end_ns, AddSaturating(event.start_ns, limits::kViewLinkLengthNs));
  return {.from_ns = SubtractSaturating(event.start_ns, reach_ns),
          .to_ns = std::min<uint64_t>(AddSaturating(end_ns, reach_ns + 1), INT64_MAX)};
}

void EventLinker::AddCut(std::string sentence) {
  if (std::ranges::find(cuts_, sentence) == cuts_.end()) cuts_.push_back(std::move(sentence));
}

// A framework's file and the runtime are joined by process ids, which FrameworkLinks can judge only
// if it sees every worker that has the same, and all workers if a file does not name its process.
std::vector<uint32_t> EventLinker::StreamsNear(const StreamDescription& stream) const {
  const StreamIdentity& own = stream.identity;
  const auto& streams = layout_.capture().streams;
  const bool needs_all = own.kind != StreamKind::kNeuronCore ||
                         std::ranges::any_of(streams, [&](const StreamDescription& other) {
                           return other.identity.worker.instance_id == own.worker.instance_id &&
                                  IsFrameworkMapping(other.identity);
                         });
  std::vector<uint32_t> numbers;
  for (const StreamDescription& other : streams) {
    const StreamIdentity& identity = other.identity;
    if (identity.worker.instance_id != own.worker.instance_id) continue;
    const bool is_core = identity.kind == StreamKind::kNeuronCore &&
                         (needs_all || identity.worker.pid == own.worker.pid);
    if (is_core || identity.kind == StreamKind::kFramework) numbers.push_back(other.number);
  }
  return numbers;
}

std::vector<uint32_t> EventLinker::StreamsOfCores() const {
  std::vector<uint32_t> numbers;
  for (const StreamDescription& stream : layout_.capture().streams) {
    if (stream.identity.kind == StreamKind::kNeuronCore) numbers.push_back(stream.number);
  }
  return numbers;
}

absl::Status EventLinker::Read(const Window& window, const std::vector<uint32_t>& streams,
                               LinkCollector& collector, EventLinks& out) {
  ASSIGN_OR_RETURN(const ViewReading reading,
                   reader_.Read(window.from_ns, window.to_ns, streams, collector));
  is_complete_ = is_complete_ && reading.is_complete && reading.chunks_refused == 0;
  chunks_read_ += reading.chunks_read;
  if (reading.chunks_refused > 0) AddCut("the surroundings have more chunks than one answer reads");
  if (collector.events_not_kept() > 0) {
    AddCut(fmt::format("the surroundings have more than {} events that may be linked",
                       limits::kViewLinkNodesMax));
  }
  EventLinks found = collector.Take();
  if (found.event) out.event = std::move(found.event);
  for (EventLink& link : found.links) {
    if (out.links.size() < limits::kViewLinksMax) {
      out.links.push_back(std::move(link));
    } else {
      ++out.more;
    }
  }
  out.more += found.more;
  for (std::string& sentence : found.unlinked) out.unlinked.push_back(std::move(sentence));
  return absl::OkStatus();
}

absl::StatusOr<LinkedEvent> EventLinker::Find(const EventId& id) {
  const StreamDescription* const stream = FindStream(id.stream);
  if (stream == nullptr) {
    return NotFound("event: the capture has no stream {}", id.stream);
  }
  const uint64_t at_ns = layout_.ClockOf(*stream).ToReference(id.raw_start_ns);
  LinkCollector collector(LinkCollector::Scope::kEvent, id, std::nullopt);
  EventLinks found;
  RETURN_IF_ERROR(
      Read({.from_ns = SubtractSaturating(at_ns, kDeviceSlackNs),
            .to_ns = std::min<uint64_t>(AddSaturating(at_ns, kDeviceSlackNs + 1), INT64_MAX)},
           {id.stream}, collector, found));
  if (!found.event) {
    return NotFound("event: '{}' is not in the capture; its chunk may be damaged or deleted",
                    id.ToString());
  }
  return *std::move(found.event);
}

absl::StatusOr<EventLinks> EventLinker::LinksOf(const LinkedEvent& event) {
  EventLinks links{.event = event};
  const StreamDescription* const stream = FindStream(event.id.stream);
  if (stream == nullptr) return links;
  LinkCollector causes(LinkCollector::Scope::kCauses, event.id, event.exec_id);
  RETURN_IF_ERROR(
      Read(WindowAround(event, limits::kViewLinkReachNs), StreamsNear(*stream), causes, links));
  if (event.end_ns - event.start_ns > limits::kViewLinkLengthNs) {
    AddCut(fmt::format("of long events only the first {} s are searched for links",
                       limits::kViewLinkLengthNs / kNsPerSecond));
  }
  if (!IsOfCollective(event)) return links;
  LinkCollector collective(LinkCollector::Scope::kCollective, event.id, event.exec_id);
  RETURN_IF_ERROR(Read(WindowAround(event, limits::kViewLinkCollectiveReachNs), StreamsOfCores(),
                       collective, links));
  return links;
}

absl::StatusOr<std::vector<EventLinker::Step>> EventLinker::Follow(const EventLinks& first,
                                                                   const Options& options) {
  std::vector<Step> chain;
  std::vector<EventId> seen = {first.event->id};
  const auto take = [&](const EventLinks& links, uint32_t distance) {
    if (HasUnknownOrder(links, *options.direction)) {
      AddCut("a collective is not followed, as the clocks do not tell the order of its ranks");
    }
    uint32_t followed = 0;
    for (const EventLink& link : LinksToFollow(links, *options.direction)) {
      if (std::ranges::find(seen, link.other.id) != seen.end()) continue;
      if (followed == options.breadth) {
        return AddCut(fmt::format("of one event at most {} links are followed", options.breadth));
      }
      if (chain.size() >= limits::kViewChainEventsMax) {
        return AddCut(fmt::format("a chain has at most {} events", limits::kViewChainEventsMax));
      }
      ++followed;
      seen.push_back(link.other.id);
      chain.push_back({distance, links.event->id, link});
    }
  };
  take(first, 1);
  for (size_t next = 0; next < chain.size(); ++next) {
    // Copied, because the chain grows.
    const Step step = chain[next];
    if (chunks_read_ >= options.chunks_max) {
      AddCut(fmt::format("the chain ends after {} chunks were read", options.chunks_max));
      break;
    }
    ASSIGN_OR_RETURN(const EventLinks links, LinksOf(step.link.other));
    if (step.distance < options.depth) {
      take(links, step.distance + 1);
    } else if (!LinksToFollow(links, *options.direction).empty()) {
      AddCut(fmt::format("links are followed up to {} events away", options.depth));
    }
  }
  return chain;
}

absl::StatusOr<std::string> EventLinker::Json(const EventId& id, const Options& options) {
  ASSIGN_OR_RETURN(const LinkedEvent event, Find(id));
  ASSIGN_OR_RETURN(const EventLinks links, LinksOf(event));
  std::vector<Step> chain;
  if (options.direction) {
    ASSIGN_OR_RETURN(chain, Follow(links, options));
  }
  const Window window = WindowAround(event, limits::kViewLinkReachNs);
  JsonWriter json;
  json.Open('{').Key("event").Open('{');
  event.WriteMembers(json);
  json.Close('}').Key("links").Open('[');
  const auto write = [&json](const EventLink& link) {
    json.Member("kind", link.kind)
        .Member("direction", NameOf(link.direction))
        .Member("direct", link.is_direct);
    link.other.WriteMembers(json);
  };
  for (const EventLink& link : links.links) {
    json.Open('{');
    write(link);
    json.Close('}');
  }
  json.Close(']').Member("more", fmt::format("{}", links.more)).Member("unlinked", links.unlinked);
  json.Key("chain").Open('[');
  for (const Step& step : chain) {
    json.Open('{').Member("distance", step.distance).Member("from", step.from.ToString());
    write(step.link);
    json.Close('}');
  }
  json.Close(']')
      .Member("from_ns", fmt::format("{}", window.from_ns))
      .Member("to_ns", fmt::format("{}", window.to_ns))
      .Key("cut");
  cuts_.empty() ? json.Json("null") : json.Value(fmt::format("{}", fmt::join(cuts_, "; ")));
  return json.Member("scanned_chunks", chunks_read_)
      .Member("complete", is_complete_)
      .Close('}')
      .Take();
}

}  // namespace neurontrace
