// SPDX-License-Identifier: Apache-2.0
// The parts of the API's JSON that the page reads. Members of proto messages are optional, because proto3 JSON leaves
// out what has its default value; 64-bit integers are decimal strings.
import {Certificate, WorkerIdentity} from '../model/certificate_types';
import {Direction} from '../model/link_arrows';

export interface Session {
  user: string;
  role: string;
  may: {view: boolean, start: boolean, stop: boolean, edit: boolean, delete: boolean, export: boolean};
  aggregator: string;
  has_session?: boolean;  // DELETE /session ends something
}

export interface KeyValue {
  key?: string;
  value?: string
}
export interface RankRange {
  first?: string;
  last?: string
}
export interface CapturePreview {
  measuredNs?: string;
  eventsPerSecond?: number;
  bytesPerSecond?: number;
  durationNs?: string;
  events?: string;
  bytes?: string;
  storeFreeBytes?: string;
  quotaLeftBytes?: string;
  mostBytesPerSecond?: number;
  mostInstanceId?: string;
  objections?: string[];
}

export interface CaptureSpec {
  name?: string;
  job?: string;
  instanceIds?: string[];
  durationNs?: string;
  mode?: string;
  workerGids?: RankRange[];
  retentionNs?: string;
  labels?: KeyValue[];
  cause?: string;
}

export interface Capture {
  captureId?: string;
  name?: string;
  spec?: CaptureSpec;
  state?: string;
  startedRealtimeNs?: string;
  stoppedRealtimeNs?: string;
  workers?: {workerGids?: string[], worker?: WorkerIdentity, cores?: unknown[], state?: string, streams?: number}[];
  streams?: {identity?: {kind?: string}, workerGid?: string}[];
  warnings?: string[];
  events?: string;
  eventsLost?: string;
  eventsLostUnknown?: boolean;
  bytes?: string;
  serverRealtimeNs?: string;
  certificate?: Certificate;
  preview?: CapturePreview;
  starred?: boolean;
  tags?: string[];
  artifacts?: string;
  artifactBytes?: string;
  eventsExpired?: string;
  ranks?: number|string;
}

// The members of UpdateCaptureRequest.
export interface CaptureChange {
  name?: string;
  starred?: boolean;
  add_tags?: string[];
  remove_tags?: string[];
  retention_ns?: string;  // 0: no limit
}

// An answer of /captures/ID/artifacts.
export interface Artifact {
  path?: string;
  kind?: string;
  sha256?: string;
  bytes?: string;
  modifiedRealtimeNs?: string;
  agentId?: string;
  instanceId?: string;
  pid?: number;
}

export interface ArtifactList {
  artifacts?: Artifact[];
  missing?: {path?: string, bytes?: string, reason?: string, agentId?: string}[];
  notListed?: string;
  hidden?: string;
}

// An answer of /downloads/NAME; it has the API's own names.
export interface DownloadState {
  state: 'unknown'|'running'|'done'|'cancelled'|'failed';  // unknown: without the other members
  file: string;
  bytes: string;
  bytes_total: string;
  chunks_read: string;
  chunks_total: string;
  incomplete: boolean;
  verdict: string;
  warnings: string[];
  notes: string[];
  error?: {code: string, message: string, hint?: string};
}

export interface StandingExport {
  name?: string;
  to?: string;
  formats?: string[];
  job?: string;
  capture?: string;
  incomplete?: boolean;
  pending?: string;
  done?: string;
  failed?: string;
  runningCapture?: string;
  lastRealtimeNs?: string;
  lastCapture?: string;
  lastWrittenTo?: string;
  lastProblem?: string;
}

export interface AgentEntry {
  hello?: {agentId?: string, agentVersion?: string, instanceId?: string, hostName?: string, instanceType?: string};
  connected?: boolean;
  lastSeenRealtimeNs?: string;
  workers?: number;
}

export interface WorkerEntry {
  identity?: WorkerIdentity;
  state?: string;
  detail?: string;
  command?: string;
  job?: string;
  runtimeVersion?: string;
  cores?:
      {ncIdx?: number, rankEvidence?: {source?: string, workerGid?: string, worldSize?: string, guessed?: boolean}[]}[];
  warnings?: string[];
}

export interface ClockEntry {
  instanceId?: string;
  aligned?: boolean;
  offsetNs?: string;
  driftPpb?: string;
  boundNs?: string;
  likelyBoundNs?: string;
  sources?: string[];
  exchanges?: string;
  findings?: {kind?: string, words?: string, amountNs?: string}[];
}

export interface TriggerEntry {
  rule?: {
    name?: string,
    kind?: string,
    job?: string,
    timesMedian?: number,
    silentNs?: string,
    coolDownNs?: string,
    perHourMax?: number,
    lastNs?: string,
    durationNs?: string
  };
  fired?: string;
  suppressed?: string;
  lastFiredRealtimeNs?: string;
  lastCause?: string;
  lastCaptureId?: string;
  lastProblem?: string;
}

// --- Of the timeline; these members have the names that docs/formats/view_api.md gives them.

// An event as links name it.
export interface LinkedEvent {
  id: string;
  stream: number;
  row: number;
  row_name?: string;
  name: string;
  start_ns: string;
  end_ns: string;
  depth?: number;
}

export interface EventLink extends LinkedEvent {
  kind: string;
  direction: Direction;
  direct?: boolean;
}

export interface ChainStep extends EventLink {
  from: string;  // id of the event that it is linked to
  distance: number;
}

export interface LinksReply {
  event: LinkedEvent;
  links: EventLink[];
  more: string;
  unlinked: string[];
  chain: ChainStep[];
  cut: string|null;
  complete: boolean;
}

export interface EventEntry {
  stream: number;
  row: number;
  name: string;
  type: string;
  phase: string;
  start_ns: string;
  end_ns: string;
  duration_ns: string;
  depth?: number;
  flags?: string[];
  id?: string;
  sequence_id?: string;
  bound_ns?: string;
  bound_known?: boolean;
  args?: Record<string, unknown>;
  row_name?: string;
  category?: string;
  thread_id?: string;
}

export interface EventsReply {
  events: EventEntry[];
  next: string;
  scanned_chunks: number
}
export interface Hit {
  id?: string;
  row_name?: string;
  stream: number;
  row: number;
  name: string;
  start_ns: string;
  duration_ns: string
}

export interface SearchReply {
  hits: Hit[];
  total: string;
  complete: boolean;
  density: number[];
  scanned_chunks: number;
  digested_chunks?: number;
  shift_ns?: string;  // how far from its place a hit of them may be in `density`
  ranks: number;
  next: string;
}

export interface SummaryRow {
  name: string;
  count: string;
  total_ns: string;
  self_ns: string;
  p50_ns: string;
  p99_ns: string;
  min_ns: string;
  max_ns: string;
}

export interface SummaryReply {
  rows: SummaryRow[];
  events: string;
  complete: boolean
}
