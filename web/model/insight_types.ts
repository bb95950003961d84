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
}
