// SPDX-License-Identifier: Apache-2.0
import {safeText} from '../model/safe_text';

// What the API answered instead of the result, or why there was no answer.
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly hint: string) {
    super(message);
  }

  // Reads the error object of an answer. Proxies in between answer in other formats.
  static async of(answer: Response): Promise<ApiError> {
    let error: Record<string, unknown> = {};
    try {
      error = ((await answer.json()) as {error?: Record<string, unknown>}).error ?? {};
    } catch {
      // The status has to do.
    }
    const wait = answer.headers.get('retry-after');
    const hint = safeText(error.hint ?? '', 500) || (wait ? `Try again in ${safeText(wait, 20)} s.` : '');
    return new ApiError(
        answer.status, String(error.code ?? 'UNKNOWN'),
        safeText(error.message ?? `the aggregator answered with status ${answer.status}`, 1000), hint);
  }

  static unreachable(): ApiError {
    return new ApiError(
        0, 'UNAVAILABLE', 'the aggregator does not answer',
        'Check that it is running and that this machine reaches it; the page tries again.');
  }
}

// What to show for whatever a request threw.
export function describeError(error: unknown): {message: string, hint: string} {
  if (error instanceof ApiError) return {message: error.message, hint: error.hint};
  return {
    message: error instanceof Error ? error.message : String(error),
    hint: 'Reload the page. If it happens again, report it.'
  };
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
