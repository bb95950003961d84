// SPDX-License-Identifier: Apache-2.0
// Verdicts as the page reads them: v1.InsightReport with the members of proto3 JSON in lowerCamelCase. Members with
// their default value are absent; 64-bit integers are decimal strings.

export interface InsightCore {
  job?: string;
  instanceId?: string;
  pid?: string;
  workerGid?: string;  // "-1": unknown; absent: 0
  ncIdx?: number;
}

export interface RuledOut {
  what?: string;
  ratio?: number;
  figure?: string;
}

export interface VerdictMessage {
  kind?: string;
  suspects?: InsightCore[];
  suspectsTotal?: number;
  phase?: string;
  role?: string;
  peers?: number;
  ratio?: number;
  z?: number;
  executions?: number;
  judged?: number;
  sinceNs?: string;
  untilNs?: string;
  costNs?: string;
  stepNs?: string;
  waiting?: number;
  execId?: string;
  opId?: string;
  ruledOut?: RuledOut[];
  text?: string;
  look?: string;
  annotation?: string;  // the annotated range of the program that the excess is in, as one line
}

export interface RefusalMessage {
  reason?: string;
  cores?: InsightCore[];
  coresTotal?: number;
  beginNs?: string;
  endNs?: string;
  count?: string;
  missing?: string;
}

export interface StacksMember {
  instanceId?: string;
  pid?: string;
  workerGids?: string[];
  outcome?: string;  // "STACKS_OUTCOME_TAKEN"; absent: not answered yet
  detail?: string;
}

// Depth first: the children of a node follow it with depth + 1.
export interface StackNode {
  depth?: number;
  function?: string;  // absent: the stacks of these members end at the node above
  file?: string;
  members?: number[];
  isMinority?: boolean;
  isMain?: boolean;
}

export interface StacksMessage {
  job?: string;
  reason?: string;
  askedRealtimeNs?: string;
  pending?: number;
  members?: StacksMember[];
  nodes?: StackNode[];
  nodesLeftOut?: string;
  lines?: string[];
  problem?: string;
}

export interface InsightMessage {
  verdicts?: VerdictMessage[];
  refusals?: RefusalMessage[];
  cores?: number;
  coresJudged?: number;
  executions?: string;
  stepNs?: string;
  exposedWaitNs?: string;
  explainedWaitNs?: string;
  belowCost?: boolean;
  beginNs?: string;
  endNs?: string;
  warnings?: string[];
  ruleVersion?: string;
  stacks?: StacksMessage[];
}
