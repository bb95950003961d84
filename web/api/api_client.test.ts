// SPDX-License-Identifier: Apache-2.0
// Who learns that a session has ended. Requests are answered by a server that is written here.
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';

import {ApiClient} from './api_client';
import {ApiError} from './api_error';

const kFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = kFetch;
});

// Answers each request with the status that `statusOf` returns for it.
function serve(statusOf: (method: string, path: string) => number): string[] {
  const asked: string[] = [];
  globalThis.fetch =
      (async (path: string, {method}: RequestInit) => {
        asked.push(`${method} ${path}`);
        const status = statusOf(method ?? 'GET', path);
        const body = status < 400 ? {} : {error: {code: 'UNAUTHENTICATED', message: 'sign in', hint: 'with a token'}};
        return new Response(JSON.stringify(body), {status});
      }) as typeof fetch;
  return asked;
}

class App {
  readonly errors: ApiError[] = [];
  readonly api = new ApiClient(this);
  signedOut(error: ApiError): void {
    this.errors.push(error);
  }
}

test('the end of a session is told once for each request that it refused, and the caller fails too', async () => {
  serve(() => 401);
  const app = new App();
  await assert.rejects(app.api.captures(), ApiError);
  await assert.rejects(app.api.updateCapture('01J', {starred: true}), {status: 401});
  await assert.rejects(app.api.session(), ApiError);
  assert.deepEqual(app.errors.map(error => [error.message, error.hint]), Array(3).fill(['sign in', 'with a token']));
});

test('a wrong token is no end of a session', async () => {
  serve(() => 401);
  const app = new App();
  await assert.rejects(app.api.signIn('wrong'), {status: 401});
  assert.equal(app.errors.length, 0);
});

test('what a role may not do leaves the session as it is', async () => {
  serve((method, path) => method === 'PATCH' ? 403 : path.endsWith('/captures') ? 503 : 200);
  const app = new App();
  await assert.rejects(app.api.updateCapture('01J', {starred: true}), {status: 403});
  await assert.rejects(app.api.captures(), {status: 503});
  await app.api.session();
  assert.equal(app.errors.length, 0);
});

test('signing out is one request, and none follows it', async () => {
  const asked = serve(() => 200);
  await new App().api.signOut();
  assert.deepEqual(asked, ['DELETE /api/v1/session']);
});
