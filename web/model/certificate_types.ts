// SPDX-License-Identifier: Apache-2.0
// A capture's certificate as the page reads it, with the members of proto3 JSON in lowerCamelCase.

export interface WorkerIdentity {
  instanceId?: string;
  bootId?: string;
  pid?: number;
  containerId?: string
}
export interface Loss {
  place?: string;
  reason?: string;
  events?: string;
  eventsUnknown?: boolean;
  detail?: string
}

export interface EventAccount {
  expected?: string;
  captured?: string;
  stored?: string;
  lost?: string;
  lostUnknown?: boolean;
  losses?: Loss[];
  conserved?: string;
}

export interface Remark {
  kind?: string;
  count?: string;
  details?: string[]
}

export interface WorkerCertificate {
  worker?: WorkerIdentity;
  framework?: boolean;
  part?: string;
  absence?: string;
  detail?: string;
  workerGids?: string[];
  account?: EventAccount;
  clock?: {aligned?: boolean, boundNs?: string, words?: string};
  gaps?: string;
  gapsSumNs?: string;
  remarks?: Remark[];
  job?: string;
}

export interface Certificate {
  captureId?: string;
  provisional?: boolean;
  complete?: boolean;
  verdict?: string;
  account?: EventAccount;
  workers?: WorkerCertificate[];
  findings?: string[];
  notes?: string[];
  agents?: {agentId?: string, instanceId?: string, part?: string, connected?: boolean}[];
  hosts?: {
    stream?: {worker?: WorkerIdentity, name?: string},
    account?: EventAccount,
    gaps?: string,
    gapsSumNs?: string,
    cutShort?: boolean
  }[];
  jobs?:
      {job?: string, workers?: string, cores?: string, worldSize?: string, ranksSeen?: string, conflicts?: string[]}[];
}
