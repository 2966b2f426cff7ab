# SPDX-License-Identifier: Apache-2.0
"""Addresses of the picture of the project."""

from django.urls import path

from clickos_dashboard.topology import views

urlpatterns = [path('', views.IndexView.as_view(), name='index')]
