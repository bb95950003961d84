// SPDX-License-Identifier: Apache-2.0
import {InsightMessage} from '../model/insight_types';

import {ApiError, isAbort} from './api_error';
import * as api from './api_types';
import {Capture, EventsReply, LinksReply, SearchReply, Session, SummaryReply} from './api_types';

const kRoot = '/api/v1';

export type Query = Record<string, string|number|undefined>;

// Calls the aggregator. Every failure is an ApiError, except that an aborted call throws what fetch throws.
export class ApiClient {
  // `listener` also learns of each request that was refused because nobody is signed in, before its caller does.
  constructor(private readonly listener: {signedOut(error: ApiError): void}|null = null) {}

  async session(): Promise<Session> {
    return await this.json('GET', '/session') as Session;
  }

  async signIn(token: string): Promise<void> {
    await this.json('POST', '/session', {token});
  }

  async signOut(): Promise<void> {
    await this.json('DELETE', '/session', {});
  }

  // Replies of the operator service, with members in lowerCamelCase.
  async operator(path: string): Promise<Record<string, unknown>> {
    return camelCase(await this.json('GET', path)) as Record<string, unknown>;
  }

  async captures(): Promise<Capture[]> {
    return ((await this.operator('/captures')).captures ?? []) as Capture[];
  }

  async capture(id: string): Promise<Capture> {
    return await this.operator(`/captures/${encodeURIComponent(id)}`) as Capture;
  }

  async startCapture(spec: Record<string, unknown>, dryRun: boolean): Promise<Capture> {
    return camelCase(await this.json('POST', '/captures', dryRun ? {spec, dry_run: true} : {spec})) as Capture;
  }

  async stopCapture(id: string): Promise<void> {
    await this.json('POST', `/captures/${encodeURIComponent(id)}/stop`, {});
  }

  // What the change does not mention stays.
  async updateCapture(id: string, change: api.CaptureChange): Promise<void> {
    await this.json('PATCH', `/captures/${encodeURIComponent(id)}`, change);
  }

  async deleteCapture(id: string, confirm: string): Promise<void> {
    await this.json('DELETE', `/captures/${encodeURIComponent(id)}`, {confirm});
  }

  async layout(id: string): Promise<Record<string, unknown>> {
    return await this.json('GET', this.path(id, 'layout', {})) as Record<string, unknown>;
  }

  async events(id: string, query: Query, signal?: AbortSignal): Promise<EventsReply> {
    return await this.json('GET', this.path(id, 'events', query), undefined, signal) as EventsReply;
  }

  async links(id: string, query: Query, signal?: AbortSignal): Promise<LinksReply> {
    return await this.json('GET', this.path(id, 'links', query), undefined, signal) as LinksReply;
  }

  async search(id: string, query: Query, signal?: AbortSignal): Promise<SearchReply> {
    return await this.json('GET', this.path(id, 'search', query), undefined, signal) as SearchReply;
  }

  async summary(id: string, query: Query, signal?: AbortSignal): Promise<SummaryReply> {
    return await this.json('GET', this.path(id, 'summary', query), undefined, signal) as SummaryReply;
  }

  async spans(id: string, query: Query, signal: AbortSignal): Promise<ArrayBuffer> {
    return await (await this.call('GET', this.path(id, 'spans', query), undefined, signal)).arrayBuffer();
  }

  async heat(id: string, query: Query, signal: AbortSignal): Promise<ArrayBuffer> {
    return await (await this.call('GET', this.path(id, 'heat', query), undefined, signal)).arrayBuffer();
  }

  // Which rank is slow or hung in a stretch of a capture.
  async why(id: string, query: Query, signal?: AbortSignal): Promise<InsightMessage> {
    return camelCase(await this.json('GET', this.path(id, 'why', query), undefined, signal)) as InsightMessage;
  }

  // The same of the fleet's watch, as it is now. Status 409 if no watch is on.
  async whyNow(signal?: AbortSignal): Promise<InsightMessage> {
    return camelCase(await this.json('GET', '/why', undefined, signal)) as InsightMessage;
  }

  async artifacts(id: string): Promise<api.ArtifactList> {
    return await this.operator(`/captures/${encodeURIComponent(id)}/artifacts`) as api.ArtifactList;
  }

  artifactAddress(id: string, query: Query): string {
    return kRoot + this.path(id, 'artifact', query);
  }

  // The state of a download that the page named; unknown until its request has arrived.
  async download(name: string): Promise<api.DownloadState> {
    return await this.json('GET', `/downloads/${encodeURIComponent(name)}`) as api.DownloadState;
  }

  async cancelDownload(name: string): Promise<void> {
    await this.json('DELETE', `/downloads/${encodeURIComponent(name)}`, {});
  }

  async exportFile(id: string, query: Query, signal?: AbortSignal): Promise<Response> {
    return this.call('GET', this.path(id, 'export', query), undefined, signal);
  }

  // Changes of a capture, as server-sent events.
  watch(id: string): EventSource {
    return new EventSource(kRoot + this.path(id, 'watch', {}));
  }

  exportAddress(id: string, query: Query): string {
    return kRoot + this.path(id, 'export', query);
  }

  private path(id: string, what: string, query: Query): string {
    const text =
        new URLSearchParams(
            Object.entries(query).filter(([, value]) => value !== undefined).map(([key,
                                                                                   value]) => [key, String(value)]))
            .toString();
    return `/captures/${encodeURIComponent(id)}/${what}${text ? '?' + text : ''}`;
  }

  private async json(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
    return (await this.call(method, path, body, signal)).json();
  }

  private async call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(kRoot + path, {
        method,
        signal,
        credentials: 'same-origin',
        body: body === undefined ? undefined : JSON.stringify(body),
        headers: body === undefined ? {} : {'Content-Type': 'application/json'},
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw ApiError.unreachable();
    }
    if (answer.ok) return answer;
    const error = await ApiError.of(answer);
    // A wrong token is shown beside where it was typed.
    const isSignIn = method === 'POST' && path === '/session';
    if (error.status === 401 && !isSignIn) this.listener?.signedOut(error);
    throw error;
  }
}

// proto3 JSON is written in lowerCamelCase or with the names of the .proto files; both are accepted.
export function camelCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCase);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(
      ([key,
        member]) => [key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()), camelCase(member)]));
}
