"""Apps: three applications and a gallery of sample designs, written with public names of Tavola only.

`support_desk`, `service_desk` and `terraform_review` are complete applications; `gallery` holds small designs. They import
what a user may import, so that they prove what users can do. They need the extra `apps`; this package imports none of them.

    shell             the FastAPI application, pages, charts, stores and stream followers that all of them share
    errors            ApplicationError, the base of the applications' own errors
    queries           one page of a query, and time ranges
    policy_documents  the parts of an IAM policy
    seeding           random choices and a batch writer for demo data
"""
