/**
 * Whether files of this machine are a store that anybody could mean who named
 * none. In a container or on a platform that starts replicas elsewhere, each
 * replica has files of its own, and each would lead: that has to be said.
 */
import { existsSync } from "node:fs";

/** Variables that platforms set where they run replicas, usually on several machines. */
const PLATFORMS: readonly (readonly [variable: string, what: string])[] = [
  ["KUBERNETES_SERVICE_HOST", "a Kubernetes pod"],
  ["NOMAD_ALLOC_ID", "a Nomad allocation"],
  ["ECS_CONTAINER_METADATA_URI_V4", "an ECS task"],
  ["ECS_CONTAINER_METADATA_URI", "an ECS task"],
  ["AWS_LAMBDA_FUNCTION_NAME", "a Lambda function"],
  ["K_SERVICE", "a Cloud Run service"],
  ["CLOUD_RUN_JOB", "a Cloud Run job"],
  ["GAE_INSTANCE", "an App Engine instance"],
  ["WEBSITE_INSTANCE_ID", "an Azure App Service instance"],
  ["CONTAINER_APP_REPLICA_NAME", "an Azure Container Apps replica"],
  ["FLY_MACHINE_ID", "a Fly machine"],
  ["DYNO", "a Heroku dyno"],
  ["RENDER_INSTANCE_ID", "a Render instance"],
  ["RAILWAY_REPLICA_ID", "a Railway replica"],
  ["container", "a container"],
];

/** Files that container engines put into the root of a container. */
const FILES: readonly (readonly [path: string, what: string])[] = [
  ["/.dockerenv", "a container"],
  ["/run/.containerenv", "a container"],
];

/** What is asked about this machine. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  exists(path: string): boolean;
}

const HERE: Surroundings = {
  get env() {
    return process.env;
  },
  exists: existsSync,
};

/** By which sign other replicas of this program would not see our files; `undefined`: there is none. */
export function separateReplicas({ env, exists }: Surroundings = HERE): string | undefined {
  const platform = PLATFORMS.find(([variable]) => env[variable]);
  if (platform !== undefined) return `${platform[1]} (${platform[0]} is set)`;
  const file = FILES.find(([path]) => exists(path));
  return file === undefined ? undefined : `${file[1]} (${file[0]} exists)`;
}

/** What that means for elections in files. */
export function ownLeaderEach(sign: string): string {
  return (
    `no store was named, and this is ${sign}: elections would live in files that only this container sees, ` +
    "so that every replica leads an election of its own and each job runs once per replica"
  );
}
