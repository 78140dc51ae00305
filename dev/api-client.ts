export interface Job {
  job_id: string;
  status: string;
  attempts: number;
  worker_id: string | null;
  progress: number | null;
  result: Record<string, unknown> | null;
  error: string | null;
  logs_uri: string | null;
  error_code: string | null;
  completed_at: string | null;
}

export interface Attempt {
  attempt: number;
  worker_id: string | null;
  queued_at: string;
  assigned_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  outcome: string | null;
  error: string | null;
  usage: Record<string, number | null> | null;
  gpu_hours_measured: number | null;
}

export interface Answer<T = unknown> {
  status: number;
  headers: Headers;
  body: T;
}

/** An HTTP client for the parts of the API that the demo, the benchmarks and the tests call. */
export class ApiClient {
  constructor(
    readonly baseUrl: string,
    readonly key: string,
  ) {}

  /** Sends a request and returns the response, with any status. */
  async call<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`${this.baseUrl}${path}`, {
      method,
      headers: {
        "x-service-api-key": this.key,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as T,
    };
  }

  async get<T>(path: string): Promise<T> {
    return ok(path, await this.call<T>("GET", path));
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return ok(path, await this.call<T>("POST", path, body));
  }

  async submit(type: string, body: unknown): Promise<Job> {
    return await this.post<Job>(`/api/jobs/${type}`, body);
  }

  async job(jobId: string): Promise<Job> {
    return await this.get<Job>(`/api/jobs/${jobId}`);
  }

  async attempts(jobId: string): Promise<Attempt[]> {
    return (await this.get<{ attempts: Attempt[] }>(`/api/jobs/${jobId}/attempts`)).attempts;
  }
}

function ok<T>(path: string, answer: Answer<T>): T {
  if (answer.status < 300) return answer.body;
  throw new Error(`${path}: HTTP ${answer.status} ${JSON.stringify(answer.body)}`);
}
