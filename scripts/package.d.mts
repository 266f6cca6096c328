/** Links to files of the repository: absolute, or words without a link. */
export function linked(text: string, homepage: string | undefined): string;
